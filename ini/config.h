/* SPDX-License-Identifier: Apache-2.0
 *
 * INI files as sections of pairs, with the place of everything: syntax, includes,
 * variables, overrides, and the schema of the fixed sections. Grammar: docs/ini.md.
 * Errors are collected, up to CONFIG_MAX_ERRORS, each as
 *     net.ini:12:9: error: unknown key 'strid' in [layer conv1]; did you mean 'stride'?
 *         strid = 2
 *         ^~~~~
 */
#ifndef INI_CONFIG_H
#define INI_CONFIG_H

#include <stdbool.h>

#include "core/status.h"

#define CONFIG_MAX_ERRORS 20
/* Limits; what exceeds one is an error, and judging any input stays linear in its size.
 */
#define CONFIG_MAX_BYTES (16 << 20) /* of all files read together */
#define CONFIG_MAX_FILES 256
#define CONFIG_MAX_DEPTH 8   /* of includes; the first file is depth 1 */
#define CONFIG_MAX_LINE 4096 /* bytes, after continuations are joined */
#define CONFIG_MAX_SECTIONS (1 << 18)
#define CONFIG_MAX_KEYS 256 /* of a section */
#define CONFIG_MAX_KEY 64   /* bytes of a key */
#define CONFIG_MAX_NAME 128 /* bytes of a section's name */

struct config_place {
    int file;         /* index into the files read; -1: an override */
    int line, column; /* from 1; an override's line is its number, --set before -D */
    int length;       /* characters to underline; 0: a caret alone */
};

struct config_pair {
    char *key, *value; /* value after variables are replaced, quotes removed */
    struct config_place key_place, value_place;
    bool quoted;
    bool used;    /* set by the getters; unused pairs are unknown keys */
    bool invalid; /* an error about the value was recorded: getters fail quietly */
    uint32_t line_offset; /* of its line in the source text; UINT32_MAX: not from text */
    uint16_t value_start; /* of the value in the line, continuations joined */
};

struct config_section {
    char *kind; /* "layer" */
    char *name; /* "conv1", or "" */
    struct config_place place;
    struct config_pair *pairs;
    size_t n_pairs, pairs_capacity;
    bool broken; /* a line of it had a syntax error: a missing key is no news */
};

struct config;

/* Read a file and all it includes. Syntax errors are collected, not returned; only
 * ENOMEM, and why the first file cannot be read, are. options as in
 * strata_network_options, may be NULL; it must outlive the config. */
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
/* Whether [kind name] is a section. */
bool config_has(const struct config *c, const char *kind, const char *name);
/* Path of a file read, for resolving names relative to it; that of the first for -1. */
const char *config_file(const struct config *c, int file);

/* Whether the file at path is one of those read. */
bool config_reads(const struct config *c, const char *path);
/* FNV-1a of the files read, a NUL byte between each and the next. */
uint64_t config_hash(const struct config *c);

/* Record one error with its source line and caret; drops those past the limit but counts
 * them. */
void config_error(struct config *c, struct config_place place, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* Put the place, its source line and a caret around a message that stands alone. */
void config_locate(struct config *c, struct config_place place, strata_error *err);
size_t config_errors(const struct config *c);
/* Whether the limit is reached, so that a caller can spare itself the search for a hint.
 */
bool config_full(const struct config *c);
/* A text shown as a last line of each error recorded from now on ("stride: step of the
 * window, 1 to 64"); NULL: none. Must stay valid until replaced. */
void config_note(struct config *c, const char *text);
/* "FILE:LINE", or the override's text, for messages that name a second place. */
void config_describe(const struct config *c, struct config_place place, char *out,
                     size_t size);
/* Record what another part of the library said of the text at a place. That memory ran
 * out is no error of the file's. */
void config_failed(struct config *c, struct config_place place, const strata_error *why);
/* Whether memory ran out while something was read; config_finish gives ENOMEM. */
bool config_no_memory(const struct config *c);
/* STRATA_OK if none was recorded, else EPARSE with all of them in err. */
int config_finish(struct config *c, strata_error *err);

/* Place of `length` bytes at `offset` of a value, through quotes, variables and
 * continued lines; once config_full(), where no more errors are recorded, of all of
 * it. */
struct config_place config_value_place(const struct config *c,
                                       const struct config_pair *p, size_t offset,
                                       size_t length);
/* Copy of n bytes that lives as long as the config; NULL with ENOMEM noted for
 * config_finish. */
char *config_text(struct config *c, const char *text, size_t n);

/* A pair by key, marked used; NULL if absent. */
struct config_pair *config_get(struct config_section *s, const char *key);
/* The same, and an error at the section if it is absent (and the section not broken). */
struct config_pair *config_require(struct config *c, struct config_section *s,
                                   const char *key);
/* Record an unknown-key error for each unused pair of the section, with the nearest of
 * the names allowed. */
void config_unknown(struct config *c, const struct config_section *s,
                    const char *const *names, size_t n);

/* A name of [profile]. */
#define CONFIG_MAX_SIZES 16
struct config_symbol {
    const char *name;
    struct config_place place; /* of its value */
    int64_t least, most;       /* equal: one number; most -1: its error was recorded */
    int64_t step;              /* from one size of a range to the next */
    int64_t sizes[CONFIG_MAX_SIZES]; /* that are listed, ascending; the last is most */
    size_t n_sizes;
    bool used; /* it stood in a value */
};
/* Read [profile], once, before values that may use its names. */
void config_profile(struct config *c);
/* Once all values are read: an override of a name that stands in none is an error. */
void config_check_profile(struct config *c);
/* All of its names, in the order of the file; and the index of one of them, or -1. */
size_t config_symbols(const struct config *c, const struct config_symbol **out);
int config_symbol(const struct config *c, const char *name, size_t length);

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
/* What a size of a symbol is in a list: "H", "H*2", "H/8", which is exact at all sizes,
 * "past+T", "past+1". */
struct config_part {
    int symbol; /* index; -1: a number */
    int64_t times, over;
    int plus;     /* the other symbol of a sum; -1: none */
    int64_t more; /* the number of a sum */
};
/* The same, where names with several sizes may stand: out has what their largest makes,
 * and parts has max_n entries. */
bool config_dims(struct config *c, const struct config_pair *p, int64_t min, int64_t max,
                 int64_t *out, size_t max_n, size_t *n, struct config_part *parts);
bool config_reals(struct config *c, const struct config_pair *p, double *out,
                  size_t max_n, size_t *n);
/* "a, b:1": items trimmed; offset is for config_value_place. */
struct config_item {
    char *text;
    size_t offset; /* in the value */
};
bool config_list(struct config *c, const struct config_pair *p, struct config_item **out,
                 size_t *n);
void config_list_free(struct config_item *items, size_t n);

#endif /* INI_CONFIG_H */
