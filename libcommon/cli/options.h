/* SPDX-License-Identifier: Apache-2.0
 *
 * Option tables. One table per tool; parsing, --help and the man page all come from it.
 *
 * To add an option, add a row to the tool's table. tests/tools/cli.bats checks that --help and the
 * man page show it.
 *
 * Rules, the same for all tools: options and operands may be mixed; `--` ends the options (what
 * follows is the command that the tool is to run, if its table takes one); `--name=value` and
 * `--name value` are equivalent; a long option may be abbreviated to a unique prefix; letters may
 * be combined (-vvo FILE, -oFILE). `-` alone and what looks like a number (-1, -.5) are operands.
 * Each long option may be set by the environment variable TF_NAME ("--save-every" by
 * TF_SAVE_EVERY); an empty variable counts as absent, flags take 1, true, yes, on and 0, false, no,
 * off, and the command line takes precedence. Every table has -h, --help, --version (with --json
 * beside either: one JSON object) and --man.
 *
 * An option on the command line that the tool would not read is an error: an option of another
 * verb, one that needs another option that is absent, or one that excludes another that is present.
 * A variable of the environment is no such error, as it is there for all tools.
 *
 * The parser writes through a table's targets and keeps nothing else: use a table once per process.
 * Not thread-safe.
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
    OPTION_NATURAL,  /* int64_t *, a count of 0 or more; a default may be negative */
    OPTION_FLOAT,    /* double * */
    OPTION_TEXT,     /* const char ** */
    OPTION_OPTIONAL, /* const char **: "--name" alone sets ""; a value needs "--name=VALUE" */
    OPTION_LIST,     /* struct option_list *: may be repeated; commas separate */
    OPTION_REPEAT,   /* struct option_list *: may be repeated; commas do not separate */
    OPTION_BYTES,    /* int64_t *: 64k, 1.5G */
    OPTION_SECONDS,  /* double *: 30s, 2m */
};

struct option_list {
    const char **items; /* allocated by the parser; valid until the process ends */
    size_t n, capacity;
};

struct option_row {
    char letter;      /* 0: none */
    const char *name; /* long name; NULL ends the table */
    enum option_type type;
    void *target;
    const char *argument; /* "FILE"; NULL for flags */
    const char *help;     /* starts in lower case, no full stop; lines after \n are aligned */
};

/* A verb: a value of the first operand of a tool that does several things. */
struct option_verb {
    const char *name;     /* "forget"; "": the action without a verb */
    const char *operands; /* "STORE[@STEP]", after the verb; as in usage */
    const char *help;     /* starts in lower case, no full stop; lines after \n are aligned */
    const char *options;  /* "keep-last dry-run": the options that this verb takes, of those that
                           * not all take. An option in none of these lists is for all verbs */
};

/* Options that need one of several other options. */
struct option_need {
    const char *options; /* "save-every keep" */
    const char *one_of;  /* "save" */
};

/* Options that exclude each other: each of one list excludes each other one of the second list. The
 * command line overrides the environment. */
struct option_clash {
    const char *options; /* "seed memory" */
    const char *beside;  /* "text" */
};

struct option_table {
    const char *tool;        /* "tf-opt" */
    const char *summary;     /* one line: "simplify a graph" */
    const char *operands;    /* "[FILE]" for the synopsis */
    const char *description; /* paragraphs for the man page */
    const char *examples;    /* shown first by --help, and in the man page; one command per line */
    const struct option_row *rows;
    const struct option_verb *verbs;    /* ends with a NULL name; NULL: none */
    const struct option_need *needs;    /* ends with NULL options; NULL: none */
    const struct option_clash *clashes; /* ends likewise */
    const char *const *topics; /* names, each followed by its text; NULL-terminated, or NULL */
    int operands_max;          /* more are a usage error; -1: no limit */
    /* If a command may follow "--": set to the index of its first word in argv, or argc. Its words
     * are no operands. NULL: words after "--" are operands. */
    int *command;
    bool writes_stream; /* stdout is a record stream: a failure before tool_open_writer is also told
                         * to the next stage */
};

/* Parses. Leaves the operands in argv[0..*n_operands). Sets *shown if --help, --version or --man
 * was given and has been printed to stdout. ERR_USAGE with a "did you mean". */
int options_parse(const struct option_table *table, int argc, char **argv, int *n_operands,
                  bool *shown, struct error *err);

/* Returns whether the command line, not the environment, has set an option ("unseen"): only then is
 * it an error that the option has no effect. */
bool options_asked(const char *name);

/* Returns the index in table->verbs of the first operand; each verb has a name. -1 and ERR_USAGE,
 * with a "did you mean", for an unknown verb, or for too few or too many operands after it: its
 * usage has one word per operand, optional ones in brackets, and "..." for any number. */
int options_verb(const struct option_table *table, int n_operands, char **operands,
                 struct error *err);

/* Prints the help of the tool; of one of its verbs (not "") with the options that it takes; or the
 * text of a topic. */
void options_help(const struct option_table *table, const char *verb, FILE *out);
/* Prints the names of verbs and options, and their relations, as a JSON object. */
void options_json(const struct option_table *table, FILE *out);
void options_man(const struct option_table *table, FILE *out); /* roff, for tf-x.1 */

#endif
