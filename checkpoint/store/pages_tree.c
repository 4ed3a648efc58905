/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "checkpoint/store/pages_private.h"

#define DEPTH_MAX 32 /* the limit of LMDB's cursors */
#define KEY_BYTES_MAX 511
#define FIRST_PAGE 2 /* after the meta pages */

struct pages_walk {
    int fd;
    const struct pages_meta *meta;
    uint8_t *seen;           /* a bit for each page */
    uint8_t *pages;          /* one buffer for each level of the tree */
    struct pages_db counted; /* what was found */
    const struct pages_db *db;
    bool is_free;                    /* it is the tree of free pages */
    uint8_t last_key[KEY_BYTES_MAX]; /* of the entry before */
    size_t last_key_bytes;
    const uint8_t *floor; /* lower bound of the next key, from the branch; NULL: none */
    size_t floor_bytes;
    struct pages_count *count;
};

static int defect(struct error *err, uint64_t page, const char *what)
{
    return error_set(err, ERR_DATA, "page %llu: %s", (unsigned long long)page, what);
}

/* Marks a run of pages as used; each page may be used only once. */
static int use_pages(struct pages_walk *w, uint64_t first, uint64_t n, uint64_t from,
                     struct error *err)
{
    if (first < FIRST_PAGE || first > w->meta->last_page || n > w->meta->last_page - first + 1)
        return defect(err, from, "refers to a page outside the file");
    for (uint64_t i = first; i < first + n; i++) {
        if (w->seen[i / 8] & 1 << i % 8)
            return defect(err, i, "is used twice");
        w->seen[i / 8] |= (uint8_t)(1 << i % 8);
    }
    return 0;
}

/* ---- pages ---- */

int page_node_count(const uint8_t *page)
{
    return (page_u16(page + PAGE_LOWER) - PAGES_HEADER_BYTES) / 2;
}

static size_t node_offset(const uint8_t *page, int i)
{
    return page_u16(page + PAGES_HEADER_BYTES + 2 * i);
}

bool page_header_fits(const uint8_t *page, uint32_t page_bytes, uint64_t number, int kind)
{
    unsigned lower = page_u16(page + PAGE_LOWER), upper = page_u16(page + PAGE_UPPER);
    return page_u64(page + PAGE_NUMBER) == number && page_u16(page + PAGE_FLAGS) == kind &&
           lower >= PAGES_HEADER_BYTES && lower <= upper && upper <= page_bytes && lower % 2 == 0;
}

/* Checks a node's header and key; the value follows the key. */
static bool node_fits(const uint8_t *page, uint32_t page_bytes, int i, size_t *end)
{
    size_t at = node_offset(page, i);
    if (at < page_u16(page + PAGE_UPPER) || at + NODE_HEADER_BYTES > page_bytes || at % 2)
        return false;
    size_t key_bytes = page_u16(page + at + 6);
    *end = at + NODE_HEADER_BYTES + key_bytes;
    return key_bytes <= KEY_BYTES_MAX && *end <= page_bytes;
}

bool pages_leaf_node(const uint8_t *page, uint32_t page_bytes, int i, struct pages_node *node)
{
    size_t end;
    if (!node_fits(page, page_bytes, i, &end))
        return false;
    const uint8_t *p = page + node_offset(page, i);
    unsigned flags = page_u16(p + 4);
    *node = (struct pages_node){.key = p + NODE_HEADER_BYTES,
                                .key_bytes = page_u16(p + 6),
                                .value_bytes = page_u16(p) | (uint64_t)page_u16(p + 2) << 16};
    if (flags == 0) {
        node->value = page + end;
        return node->value_bytes <= page_bytes - end;
    }
    if (flags != NODE_BIG || end + 8 > page_bytes)
        return false;
    node->overflow_page = page_u64(page + end);
    node->overflow_pages = (PAGES_HEADER_BYTES + node->value_bytes - 1) / page_bytes + 1;
    return true;
}

/* ---- leaves ---- */

/* Compares the previous key with this one. */
static int compare(const struct pages_walk *w, const uint8_t *key, size_t n)
{
    if (w->is_free) {
        uint64_t a = page_u64(w->last_key), b = page_u64(key);
        return a < b ? -1 : a > b;
    }
    size_t common = n < w->last_key_bytes ? n : w->last_key_bytes;
    int order = memcmp(w->last_key, key, common);
    return order ? order : w->last_key_bytes < n ? -1 : w->last_key_bytes > n;
}

static bool key_fits(const struct pages_walk *w, size_t bytes)
{
    return w->is_free ? bytes == sizeof(uint64_t) : bytes > 0;
}

static int check_key(struct pages_walk *w, const struct pages_node *node, uint64_t page,
                     struct error *err)
{
    if (!key_fits(w, node->key_bytes))
        return defect(err, page, "a key of a wrong length");
    if (w->counted.entries && compare(w, node->key, node->key_bytes) >= 0)
        return defect(err, page, "keys out of order");
    memcpy(w->last_key, node->key, node->key_bytes);
    w->last_key_bytes = node->key_bytes;
    w->counted.entries++;
    if (w->floor && compare(w, w->floor, w->floor_bytes) < 0)
        return defect(err, page, "a key that its branch does not lead to");
    w->floor = NULL;
    return 0;
}

/* Checks a list of free pages: their count, then their numbers, descending. */
static int check_free_list(struct pages_walk *w, const uint8_t *list, uint64_t bytes, uint64_t page,
                           struct error *err)
{
    uint64_t n = bytes >= 8 ? page_u64(list) : 0, before = PAGES_NONE;
    if (bytes < 8 || n > bytes / 8 - 1)
        return defect(err, page, "a list of free pages that is none");
    for (uint64_t i = 1; i <= n; i++) {
        uint64_t number = page_u64(list + 8 * i);
        if (number >= before)
            return defect(err, page, "a list of free pages out of order");
        before = number;
        if (use_pages(w, number, 1, page, err))
            return err->code;
    }
    w->count->free += n;
    return 0;
}

static int check_overflow(struct pages_walk *w, const struct pages_node *node, uint64_t page,
                          struct error *err)
{
    uint8_t header[PAGES_HEADER_BYTES];
    uint64_t first = node->overflow_page, page_bytes = w->meta->page_bytes;
    if (use_pages(w, first, node->overflow_pages, page, err) ||
        pages_read(w->fd, header, sizeof header, first * page_bytes, err))
        return err->code;
    if (page_u64(header + PAGE_NUMBER) != first || page_u16(header + PAGE_FLAGS) != FLAG_OVERFLOW ||
        page_u32(header + PAGE_RUN) != node->overflow_pages)
        return defect(err, first, "is not the start of a value");
    w->counted.overflow_pages += node->overflow_pages;
    w->count->overflow += node->overflow_pages;
    if (!w->is_free)
        return 0;
    uint8_t *list = mem_try(node->value_bytes);
    if (!list)
        return error_set(err, ERR_OS, "no memory for a list of free pages");
    if (!pages_read(w->fd, list, node->value_bytes, first * page_bytes + sizeof header, err))
        check_free_list(w, list, node->value_bytes, page, err);
    mem_free(list);
    return err->code;
}

static int check_leaf(struct pages_walk *w, const uint8_t *page, uint64_t number, struct error *err)
{
    struct pages_node node;
    w->counted.leaf_pages++;
    for (int i = 0; i < page_node_count(page); i++) {
        if (!pages_leaf_node(page, w->meta->page_bytes, i, &node))
            return defect(err, number, "an entry that is none");
        if (check_key(w, &node, number, err))
            return err->code;
        if (!node.value) {
            if (check_overflow(w, &node, number, err))
                return err->code;
        } else if (w->is_free && check_free_list(w, node.value, node.value_bytes, number, err)) {
            return err->code;
        }
    }
    return 0;
}

/* ---- the tree ---- */

static int check_page(struct pages_walk *w, uint64_t number, int level, uint64_t from,
                      struct error *err);

static int check_branch(struct pages_walk *w, const uint8_t *page, uint64_t number, int level,
                        struct error *err)
{
    size_t end;
    w->counted.branch_pages++;
    if (page_node_count(page) < 2)
        return defect(err, number, "a branch with one way only");
    for (int i = 0; i < page_node_count(page); i++) {
        if (!node_fits(page, w->meta->page_bytes, i, &end))
            return defect(err, number, "an entry that is none");
        const uint8_t *p = page + node_offset(page, i);
        if (i > 0) { /* its key is above all keys before, and not above those after it */
            w->floor = p + NODE_HEADER_BYTES;
            w->floor_bytes = page_u16(p + 6);
            if (!key_fits(w, w->floor_bytes) || compare(w, w->floor, w->floor_bytes) >= 0)
                return defect(err, number, "ways out of order");
        }
        uint64_t child =
            page_u16(p) | (uint64_t)page_u16(p + 2) << 16 | (uint64_t)page_u16(p + 4) << 32;
        if (check_page(w, child, level + 1, number, err))
            return err->code;
    }
    return 0;
}

static int check_page(struct pages_walk *w, uint64_t number, int level, uint64_t from,
                      struct error *err)
{
    uint32_t page_bytes = w->meta->page_bytes;
    uint8_t *page = w->pages + (size_t)level * page_bytes;
    bool is_leaf = level + 1 == w->db->depth;
    if (use_pages(w, number, 1, from, err) ||
        pages_read(w->fd, page, page_bytes, number * page_bytes, err))
        return err->code;
    w->count->tree++;
    if (!page_header_fits(page, page_bytes, number, is_leaf ? FLAG_LEAF : FLAG_BRANCH))
        return defect(err, number, is_leaf ? "is no leaf" : "is no branch");
    if (!page_node_count(page))
        return defect(err, number, "is empty");
    return is_leaf ? check_leaf(w, page, number, err) : check_branch(w, page, number, level, err);
}

static int check_tree(struct pages_walk *w, int which, struct error *err)
{
    const struct pages_db *db = w->db = &w->meta->dbs[which];
    w->counted = (struct pages_db){0};
    w->is_free = which == PAGES_FREE;
    w->last_key_bytes = 0;
    w->floor = NULL;
    if (db->depth > DEPTH_MAX || (db->root == PAGES_NONE) != (db->depth == 0))
        return error_set(err, ERR_DATA, "the meta page is damaged");
    if (db->depth) {
        w->pages = mem_array(db->depth, w->meta->page_bytes);
        check_page(w, db->root, 0, which, err);
        mem_free(w->pages);
    }
    if (err->code)
        return err->code;
    if (w->counted.branch_pages != db->branch_pages || w->counted.leaf_pages != db->leaf_pages ||
        w->counted.overflow_pages != db->overflow_pages || w->counted.entries != db->entries)
        return error_set(err, ERR_DATA, "the meta page counts other pages than there are");
    return 0;
}

int pages_check(int fd, const struct pages_meta *meta, struct pages_count *count, struct error *err)
{
    struct pages_walk w = {.fd = fd, .meta = meta, .count = count};
    *count = (struct pages_count){0};
    error_clear(err);
    size_t bytes = (size_t)(meta->last_page / 8 + 1);
    w.seen = mem_try(bytes);
    if (!w.seen)
        return error_set(err, ERR_OS, "no memory to check %llu pages",
                         (unsigned long long)meta->last_page);
    memset(w.seen, 0, bytes);
    if (!check_tree(&w, PAGES_FREE, err))
        check_tree(&w, PAGES_MAIN, err);
    mem_free(w.seen);
    count->lost = meta->last_page + 1 - FIRST_PAGE - count->tree - count->overflow - count->free;
    return err->code;
}
