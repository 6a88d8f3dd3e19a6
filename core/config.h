/* SPDX-License-Identifier: Apache-2.0
 *
 * INI files as sections of pairs, with the place of everything: syntax, includes,
 * variables, overrides, and the schema of the fixed sections. Grammar: docs/ini.md.
 * Errors are collected, up to CONFIG_MAX_ERRORS, each as
 *     net.ini:12:9: error: unknown key 'strid' in [layer conv1]; did you mean 'stride'?
 *         strid = 2
 *         ^~~~~
 */
#ifndef CORE_CONFIG_H
#define CORE_CONFIG_H

#include <stdbool.h>

#include "core/status.h"

#define CONFIG_MAX_ERRORS 20

struct config_place {
    int file;         /* index into the files read; -1: an override */
    int line, column; /* from 1 */
    int length;       /* characters to underline; 0: a caret alone */
};

struct config_pair {
    char *key, *value; /* value after variables are replaced, quotes removed */
    struct config_place key_place, value_place;
    bool quoted;
    bool used; /* set by the getters; unused pairs are unknown keys */
};

struct config_section {
    char *kind; /* "layer" */
    char *name; /* "conv1", or "" */
    struct config_place place;
    struct config_pair *pairs;
    size_t n_pairs, pairs_capacity;
};

struct config;

/* Read a file and all it includes. Syntax errors are collected, not returned; only
 * ENOMEM is. options as in strata_network_options, may be NULL. */
int config_load(struct config **out, const char *path,
                const strata_network_options *options, strata_error *err);
/* Over text in memory; includes are refused. For tests and fuzzing. */
int config_parse(struct config **out, const char *text, size_t size, const char *name,
                 const strata_network_options *options, strata_error *err);
void config_free(struct config *c);

size_t config_sections(const struct config *c);
struct config_section *config_section(struct config *c, size_t i);
/* The section of a kind without a name ("network", "build"), or NULL. */
struct config_section *config_find(struct config *c, const char *kind);
/* Path of a file read, for resolving names relative to it. */
const char *config_file(const struct config *c, int file);

/* Record one error with its source line and caret; drops those past the limit but counts
 * them. */
void config_error(struct config *c, struct config_place place, const char *format, ...)
    PRINTF_LIKE(3, 4);
size_t config_errors(const struct config *c);
/* STRATA_OK if none was recorded, else EPARSE with all of them in err. */
int config_finish(struct config *c, strata_error *err);

/* A pair by key, marked used; NULL if absent. */
struct config_pair *config_get(struct config_section *s, const char *key);
/* Record an unknown-key error for each unused pair of the section, with the nearest of
 * the names allowed. */
void config_unknown(struct config *c, const struct config_section *s,
                    const char *const *names, size_t n);

/* Values. Each records an error at the value's place and returns false if the text does
 * not read as the type; *out is then left alone. */
bool config_int(struct config *c, const struct config_pair *p, int64_t min, int64_t max,
                int64_t *out);
bool config_real(struct config *c, const struct config_pair *p, double min, double max,
                 double *out);
bool config_bool(struct config *c, const struct config_pair *p, bool *out);
/* choices: names separated by '|'; *out is the index. */
bool config_choice(struct config *c, const struct config_pair *p, const char *choices,
                   int *out);
/* "64MiB", "1 GB", "4096" */
bool config_size(struct config *c, const struct config_pair *p, uint64_t *out);
/* "500us", "2 ms", "1.5s": nanoseconds */
bool config_time(struct config *c, const struct config_pair *p, uint64_t *out);
/* "1 x 3 x 28 x 28", "3x3", "3, 3", "3": up to max_n integers in [min, max]. A name
 * that [profile] defines stands for its value. */
bool config_ints(struct config *c, const struct config_pair *p, int64_t min, int64_t max,
                 int64_t *out, size_t max_n, size_t *n);
bool config_reals(struct config *c, const struct config_pair *p, double *out,
                  size_t max_n, size_t *n);
/* "a, b:1": items trimmed; each with its own place. */
struct config_item {
    char *text;
    struct config_place place;
};
bool config_list(struct config *c, const struct config_pair *p, struct config_item **out,
                 size_t *n);
void config_list_free(struct config_item *items, size_t n);

#endif /* CORE_CONFIG_H */
