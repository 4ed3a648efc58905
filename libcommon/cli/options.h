/* SPDX-License-Identifier: Apache-2.0
 *
 * Option tables. One table per tool; parsing, --help and the man page all come from it.
 *
 * To add an option: a row in the tool's table. tests/tools/cli.bats then checks that --help shows
 * it and that the man page has it.
 *
 * Rules, the same for all tools: options and operands may be mixed, `--` ends options (and what
 * follows it is the command that the tool is to run, if its table takes one),
 * `--name=value` and `--name value` are equal, a long option may be cut to a unique prefix, letters
 * may be joined
 * (-vvo FILE, -oFILE). `-` alone and what looks like a number (-1, -.5) are operands. Each long
 * option may come from the environment as TF_NAME ("--save-every" as TF_SAVE_EVERY); an empty
 * variable counts as absent, flags take 1, true, yes, on and 0, false, no, off, and the command
 * line wins. -h, --help, --version (with --json beside either: one JSON object) and --man are
 * known to every table.
 *
 * An option on the command line that a tool would not read is an error: one of another verb, or one
 * that says something of another option, which was not given, or that is not read beside another,
 * which was. A variable of the environment is not, as it is there for all tools.
 *
 * The parser writes through the targets of a table and keeps nothing else: use a table once a
 * process. Not thread-safe.
 */
#ifndef TF_CLI_OPTIONS_H
#define TF_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "base/vec.h"

enum option_type {
    OPTION_FLAG,     /* bool *: set to true; "--no-name" sets it to false */
    OPTION_COUNT,    /* int *: counts (-v -v) */
    OPTION_INT,      /* int64_t * */
    OPTION_NATURAL,  /* int64_t *, 0 or more: what is counted; a default may be less */
    OPTION_FLOAT,    /* double * */
    OPTION_TEXT,     /* const char ** */
    OPTION_OPTIONAL, /* const char **: "--name" alone sets "", the value needs "--name=VALUE" */
    OPTION_LIST,     /* struct option_list *: may be repeated; commas separate */
    OPTION_REPEAT,   /* struct option_list *: may be repeated; commas do not separate */
    OPTION_BYTES,    /* int64_t *: 64k, 1.5G */
    OPTION_SECONDS,  /* double *: 30s, 2m */
};

struct option_list {
    const char **items; /* owned with the table's parse; valid for the process */
    size_t n, capacity;
};

struct option_row {
    char letter;      /* 0: none */
    const char *name; /* long name; NULL ends the table */
    enum option_type type;
    void *target;
    const char *argument; /* "FILE"; NULL for flags */
    const char *help;     /* lower case start, no full stop; further lines after \n are aligned */
};

/* A value of the first operand of a tool that does several things. */
struct option_verb {
    const char *name;     /* "forget"; "": what the tool does without a verb */
    const char *operands; /* "STORE[@STEP]", after the verb; as in usage */
    const char *help;     /* lower case start, no full stop; further lines after \n are aligned */
    const char *options;  /* "keep-last dry-run": of those that some verbs take and others do not,
                           * these. An option that is in none of these lists is for all */
};

/* Options that say nothing unless one of others is there. */
struct option_need {
    const char *options; /* "save-every keep" */
    const char *one_of;  /* "save" */
};

/* Options that are not read beside others: each of one list beside each but itself of the other.
 * One of the environment gives way to the command line. */
struct option_clash {
    const char *options; /* "seed memory" */
    const char *beside;  /* "text" */
};

struct option_table {
    const char *tool;        /* "tf-opt" */
    const char *summary;     /* one line: "simplify a graph" */
    const char *operands;    /* "[FILE]" for the synopsis */
    const char *description; /* paragraphs for the man page */
    const char *examples;    /* shown by --help first, and in the man page; one command a line */
    const struct option_row *rows;
    const struct option_verb *verbs;    /* the last has no name (NULL); NULL: there are none */
    const struct option_need *needs;    /* the last has no options (NULL); NULL: there are none */
    const struct option_clash *clashes; /* ended alike */
    const char *const *topics; /* names, a text behind each; NULL at the end, or for none */
    int operands_max;          /* more is a usage error; -1: any number */
    /* Where a command may follow "--": gets the index of its first word in argv, or argc. Its words
     * are no operands. NULL: what follows "--" are operands. */
    int *command;
    bool writes_stream; /* stdout carries records: a failure before tool_open_writer is told to
                         * the next stage, too */
};

/* Parses. Operands are left in argv[0..*n_operands). Sets *shown when --help or --version or
 * --man was asked for and has been printed to stdout. ERR_USAGE with a "did you mean". */
int options_parse(const struct option_table *table, int argc, char **argv, int *n_operands,
                  bool *shown, struct error *err);

/* Returns whether the command line had an option, "unseen", rather than the environment: there one
 * that has nothing to say is no error. */
bool options_asked(const char *name);

/* The index in table->verbs of what the operands begin with; each verb has a name. -1 and ERR_USAGE
 * where that is none of them, with a "did you mean", or where too few or too many operands follow:
 * as many as its usage has words, of which those in brackets may be missing, and "..." any number.
 */
int options_verb(const struct option_table *table, int n_operands, char **operands,
                 struct error *err);

/* Prints the help of the tool, of one of its verbs (not "") with the options that it takes, or the
 * text of a topic.
 */
void options_help(const struct option_table *table, const char *verb, FILE *out);
/* Names of verbs and options, and which go together, as an object. */
void options_json(const struct option_table *table, FILE *out);
void options_man(const struct option_table *table, FILE *out); /* roff, for tf-x.1 */

#endif
