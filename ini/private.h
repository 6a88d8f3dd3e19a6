/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of this room only: the texts behind a config, logical lines, the
 * reader over inih, variables. A file calls those named before its own.
 */
#ifndef INI_PRIVATE_H
#define INI_PRIVATE_H

#include "ini/config.h"
#include "ini/names.h"

static inline bool is_blank(char ch)
{
    return ch == ' ' || ch == '\t';
}

static inline bool is_digit(char ch)
{
    return ch >= '0' && ch <= '9';
}

/* Of a key or name, apart from digits. */
static inline bool is_letter(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_';
}

/* A file, or the text of an override. */
struct config_source {
    char *label; /* "net.ini", "--set build.fusion=no": how messages name it */
    char *text;  /* size bytes and a NUL */
    size_t size;
    bool on_disk;
    int includer; /* file that includes it, -1: none */
};

/* A chunk of the memory behind names and values. */
struct config_chunk {
    struct config_chunk *next;
    size_t used, size;
    char bytes[];
};

struct config_message {
    struct config_place place;
    char *text;
};

struct config_variable {
    const char *name, *value;
    bool defined_by_option, declared, used;
    struct config_place place;
};

struct config {
    struct config_source *files, *overrides;
    size_t n_files, files_capacity, n_overrides;
    uint64_t bytes_read, bytes_replaced; /* of files; of values with variables */
    struct names file_index;             /* identities of files */
    struct config_section *sections;
    size_t n_sections, sections_capacity;
    struct config_place *headers; /* of the sections while they are read */
    size_t n_headers, headers_capacity;
    struct names section_index; /* "kind name" to headers, at last to sections */
    struct config_variable *variables;
    size_t n_variables, variables_capacity;
    struct names variable_index;
    struct names symbol_index; /* of [profile] */
    struct config_symbol *symbols;
    size_t n_symbols;
    struct config_chunk *chunks;
    struct config_message messages[CONFIG_MAX_ERRORS];
    size_t n_errors; /* counted, recorded or not */
    const char *note;
    bool no_memory;
};

/* One line, continuations joined by a blank each, comments and blanks at the end cut. */
enum line_problem {
    LINE_GOOD,
    LINE_TOO_LONG,
    LINE_CONTROL, /* NUL or another control character */
    LINE_NOT_UTF8,
    LINE_QUOTED_SEMICOLON, /* " ;" inside quotes */
    LINE_DANGLING          /* a continuation of nothing */
};

struct config_line {
    char text[CONFIG_MAX_LINE + 2];
    uint32_t at[CONFIG_MAX_LINE + 2]; /* offset in the source of each byte and the end */
    size_t length;
    int lines; /* read from the source */
    bool indented;
    enum line_problem problem;
    size_t problem_at; /* offset in the source */
};

/* A line and where it starts. */
struct config_cursor {
    int file, line_number;
    size_t line_offset;
    struct config_line line;
};

/* What a kind of section allows. */
#define CONFIG_KINDS 12
struct config_kind {
    int index; /* below CONFIG_KINDS */
    const char *name;
    bool named;         /* [kind NAME] */
    bool per_file;      /* once in each file; the others once in all */
    const char *repeat; /* key that may repeat, or NULL */
};

/* Sections of one file, in order. */
struct config_sections {
    struct config_section *v;
    size_t n, capacity;
};

/* text.c, with config_text: frees what it gave. */
void config_text_free(struct config *c);

/* place.c */
/* The text a place is in. */
const struct config_source *config_source(const struct config *c, int file, int line);
/* Column and length of source bytes [from, to), given a line that starts at anchor. */
struct config_place config_span(const struct config *c, int file, int anchor_line,
                                size_t anchor, size_t from, size_t to);
/* Place of bytes [from, to) of the cursor's line. */
struct config_place config_cursor_place(const struct config *c,
                                        const struct config_cursor *at, size_t from,
                                        size_t to);

/* error.c */
/* suggest(), unless the error would not be recorded anyway. */
const char *config_nearest(const struct config *c, const char *word,
                           const char *const *names, size_t n);

/* line.c */
/* Read the logical line that starts at `offset`; returns where the next one starts. */
size_t config_line_read(const struct config_source *s, size_t offset,
                        struct config_line *line);
/* Record the problem of the line, if it has one; true if it has none. */
bool config_line_good(struct config *c, const struct config_cursor *at);
/* Read option `number` (from 1) whole; false after recording what is wrong with it. */
bool config_option_read(struct config *c, int number, struct config_cursor *at);

/* header.c */
const struct config_kind *config_kind(const char *name);
/* Check "KIND" or "KIND NAME" and split it; false after recording an error. */
bool config_header(struct config *c, const char *text, size_t n,
                   struct config_place place, const struct config_kind **kind,
                   char name[CONFIG_MAX_NAME + 1]);
/* "kind name" or "kind", as in section_index; the config's memory. */
char *config_header_name(struct config *c, const char *kind, const char *name);

/* pair.c */
/* Take key and value of a pair from bytes [key, equals) and after `equals` of the line:
 * key, quotes and emptiness are checked, variables are left. False after recording an
 * error. */
bool config_take_key(struct config *c, struct config_pair *p,
                     const struct config_cursor *at, size_t key, size_t equals);
bool config_take_value(struct config *c, struct config_pair *p,
                       const struct config_cursor *at, size_t equals);
int config_pair_add(struct config_section *s, const struct config_pair *p,
                    strata_error *err);

/* reader.c */
/* Tokenize file `index` through inih into `out`. */
int config_read(struct config *c, int index, struct config_sections *out,
                strata_error *err);

/* vars.c: options first, then each [vars] pair in order; then values. */
void config_define_options(struct config *c, const strata_network_options *options);
void config_define_section(struct config *c, struct config_section *s);
/* Replace the references of one value, or of all values but those of [vars]. */
void config_expand(struct config *c, struct config_pair *p);
void config_expand_all(struct config *c);
/* An error for each -D that is neither declared in [vars] nor used. */
void config_check_options(struct config *c);

/* override.c: --set options, as pairs put into the sections. */
int config_override(struct config *c, const strata_network_options *options,
                    strata_error *err);

#endif /* INI_PRIVATE_H */
