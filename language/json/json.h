/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a JSON text that may be large: its vocabulary and merges are walked one value
 * at a time, so that no tree of them is ever made; the small rest becomes jansson's
 * values, whose members are asked for by kind. Every failure says where, what was found
 * and what was needed.
 */
#ifndef LANGUAGE_JSON_JSON_H
#define LANGUAGE_JSON_JSON_H

#include <jansson.h>

#include "language/text/bytes.h"

struct json_source {
    const char *text;
    size_t size;
};

/* ---- values in the text -----------------------------------------------------------
 */

struct json_span {
    size_t begin, end; /* bytes; equal: there is none */
};

struct json_member {
    const char *key;
    struct json_span value;
};
/* Find the members of the object at `at`, all of which must be known and come once.
 * place: "" or "model". */
int json_read_members(const struct json_source *j, size_t at, const char *place,
                      struct json_member *members, size_t n, strata_error *err);

/* Walk an array or an object. */
struct json_walk {
    const struct json_source *j;
    const char *place;
    size_t at;
    size_t n; /* values so far */
    char close;
};
/* open: '[' or '{' */
int json_walk(struct json_walk *w, const struct json_source *j, struct json_span value,
              char open, const char *place, strata_error *err);
/* The next value, and in an object its key; *more is false at the end. */
int json_next(struct json_walk *w, struct token_text *key, struct json_span *value,
              bool *more, strata_error *err);

/* Replace out by a string; it may hold NUL. place: what it is, for messages. */
int json_read_text(const struct json_source *j, struct json_span value, const char *place,
                   struct token_text *out, strata_error *err);
int json_read_integer(const struct json_source *j, struct json_span value,
                      const char *place, int64_t *out, strata_error *err);
/* A value as a tree, at most 2 MiB of text; NULL for null and where there is none. */
int json_read_tree(json_t **out, const struct json_source *j, struct json_span value,
                   const char *place, strata_error *err);

/* ---- trees ------------------------------------------------------------------------
 */

#define PLACE_SIZE 160
#define MAX_STEPS 64 /* of a normalizer, pre_tokenizer, decoder */
#define MAX_NESTED 8 /* sequences in one another */

/* A value and where it is: "normalizer.normalizers[1]". */
struct node {
    json_t *value;
    char place[PLACE_SIZE];
};

/* The item of an array, or the member of an object; value NULL: absent or null. */
struct node node_item(const struct node *n, size_t i);
struct node node_member(const struct node *n, const char *key);
/* The node must be an object whose keys are all among `keys`, NULL at their end, or
 * "type". */
int node_check(const struct node *n, const char *const *keys, strata_error *err);
/* Values of members. A text must be there; a flag may be absent. */
int node_string(const struct node *n, const char *key, const char **out, size_t *size,
                strata_error *err);
int node_flag(const struct node *n, const char *key, bool absent, bool *out,
              strata_error *err);
int node_count(const struct node *n, const char *key, int64_t most, int64_t *out,
               strata_error *err);
/* A text of one character. */
int node_character(const struct node *n, const char *key, const char **out, size_t *size,
                   strata_error *err);
/* Items of a member that must be an array of at most `most`. */
int node_list(const struct node *n, const char *key, size_t most, struct node *out,
              size_t *count, strata_error *err);
/* EPARSE "PLACE: found VALUE where NEEDED is needed". */
int node_unexpected(const struct node *n, const char *needed, strata_error *err);
/* Index of the node's "type" among names; EUNSUPPORTED, naming them, for another. */
int node_type(const struct node *n, const char *const *names, size_t n_names, size_t *out,
              strata_error *err);

/* Visit the steps of a sequence, an array in its `member`; depth: of sequences around it.
 */
typedef int node_visit(void *to, const struct node *step, int depth, strata_error *err);
int node_steps(const struct node *sequence, const char *member, int depth,
               node_visit *visit, void *to, strata_error *err);

#endif /* LANGUAGE_JSON_JSON_H */
