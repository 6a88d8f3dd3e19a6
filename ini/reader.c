/* SPDX-License-Identifier: Apache-2.0
 *
 * Files through inih. inih splits lines into sections, keys and values, but as packaged
 * it cuts lines at 197 bytes and sections at 49, takes indented keys for continuations,
 * and tells neither lines nor empty sections. So its reader callback is ours: it reads
 * and checks each logical line and hands inih a short stand-in, "[@3]" for the fourth
 * section and "key = @17" for line 17. inih calls the handler before it asks for the
 * next line, so the handler finds the true value in the line just read; what inih says
 * must agree with the stand-in.
 */
#include "ini/private.h"

#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

#define NO_SECTION SIZE_MAX

/* Open addressing over a section's keys; a slot of another section is free. */
#define KEY_SLOTS (2 * CONFIG_MAX_KEYS)
struct key_slot {
    uint32_t stamp, pair;
};

struct reader {
    struct config *c;
    struct config_sections *out;
    strata_error *err;
    struct config_cursor at; /* the line handed to inih */
    size_t next;             /* offset of the line after it */
    int next_line;
    size_t section;  /* index in out, or NO_SECTION: pairs are dropped */
    bool in_section; /* a header was seen, good or bad */
    const struct config_kind *kind;
    /* of each kind in this file; line 0: none yet */
    struct config_place first[CONFIG_KINDS];
    struct key_slot keys[KEY_SLOTS]; /* of the section at hand */
    uint32_t stamp;                  /* number of that section */
    char section_token[24], value_token[24];
    struct config_pair pair; /* key and value of the line at hand */
    bool pending;            /* handed to inih, not yet seen by the handler */
    int status;
};

/* Whether the section is the first of its name; records the repetition. */
static bool is_first(struct reader *r, const struct config_kind *kind, const char *full,
                     struct config_place place)
{
    char where[256];
    struct config_place *first = &r->first[kind->index];
    int earlier = names_get(&r->c->section_index, full);
    bool repeated = kind->per_file ? first->line > 0 : earlier >= 0;
    if (!repeated) {
        *first = place;
        return true;
    }
    config_describe(r->c, kind->per_file ? *first : r->c->headers[earlier], where,
                    sizeof where);
    config_error(r->c, place, "section [%s] stands twice; first at %s", full, where);
    return false;
}

/* Add a section whose header is sound; r->section tells it, or stays NO_SECTION. */
static int add_section(struct reader *r, const struct config_kind *kind, const char *name,
                       struct config_place place)
{
    struct config *c = r->c;
    struct config_sections *out = r->out;
    char *full = config_header_name(c, kind->name, name);
    if (!full)
        return STRATA_ENOMEM;
    if (!is_first(r, kind, full, place))
        return STRATA_OK;
    if (c->n_headers >= CONFIG_MAX_SECTIONS) {
        config_error(c, place, "more than %d sections", CONFIG_MAX_SECTIONS);
        r->next = config_source(c, r->at.file, 1)->size;
        return STRATA_OK;
    }
    if (grow(&c->headers, &c->headers_capacity, c->n_headers, sizeof *c->headers,
             r->err) != STRATA_OK ||
        grow(&out->v, &out->capacity, out->n, sizeof *out->v, r->err) != STRATA_OK)
        return STRATA_ENOMEM;
    c->headers[c->n_headers] = place;
    if (names_get(&c->section_index, full) < 0 &&
        names_put(&c->section_index, full, (int)c->n_headers, r->err) != STRATA_OK)
        return STRATA_ENOMEM;
    c->n_headers++;
    out->v[out->n] = (struct config_section){
        .kind = full, .name = full + strlen(full), .place = place};
    if (*name) {
        out->v[out->n].name = full + strlen(kind->name) + 1;
        out->v[out->n].kind = config_text(c, kind->name, strlen(kind->name));
    }
    if (!out->v[out->n].kind)
        return STRATA_ENOMEM;
    r->kind = kind;
    r->section = out->n++;
    r->stamp++;
    return STRATA_OK;
}

/* "[KIND NAME]" in the line at hand. True if inih is to see its stand-in. */
static bool read_header(struct reader *r)
{
    struct config *c = r->c;
    const struct config_line *line = &r->at.line;
    const char *close = memchr(line->text, ']', line->length);
    const struct config_kind *kind;
    char name[CONFIG_MAX_NAME + 1];
    r->section = NO_SECTION;
    r->in_section = true;
    struct config_place all = config_cursor_place(c, &r->at, 0, line->length);
    if (!close) {
        config_error(c, all, "the section header lacks its ']'");
        return false;
    }
    size_t end = (size_t)(close - line->text);
    if (end + 1 < line->length) {
        struct config_place tail = config_cursor_place(c, &r->at, end + 1, line->length);
        config_error(c, tail, "text after ']'; a comment starts with ' ;'");
        return false;
    }
    if (!config_header(c, line->text + 1, end - 1, all, &kind, name))
        return false;
    r->status = add_section(r, kind, name, all);
    return r->status == STRATA_OK && r->section != NO_SECTION;
}

/* "key = value" in the line at hand. True if inih is to see its stand-in. */
static bool read_pair(struct reader *r)
{
    struct config *c = r->c;
    const struct config_line *line = &r->at.line;
    const char *equals = memchr(line->text, '=', line->length);
    struct config_place all = config_cursor_place(c, &r->at, 0, line->length);
    if (!equals) {
        config_error(c, all, "neither '[section]' nor 'key = value'");
        return false;
    }
    if (!r->in_section) {
        config_error(c, all, "a key before the first section");
        r->in_section = true;
        return false;
    }
    size_t at = (size_t)(equals - line->text);
    r->pair = (struct config_pair){0};
    return config_take_key(c, &r->pair, &r->at, 0, at) &&
           config_take_value(c, &r->pair, &r->at, at) && r->section != NO_SECTION;
}

/* Advance to the next line that is not blank; false at the end. */
static bool next_line(struct reader *r)
{
    const struct config_source *s = config_source(r->c, r->at.file, 1);
    do {
        if (r->next >= s->size)
            return false;
        r->at.line_offset = r->next;
        r->at.line_number = r->next_line;
        r->next = config_line_read(s, r->next, &r->at.line);
        r->next_line += r->at.line.lines;
    } while (!r->at.line.length && r->at.line.problem == LINE_GOOD);
    return true;
}

static void internal_error(struct reader *r)
{
    if (r->status == STRATA_OK)
        r->status =
            error_set(r->err, STRATA_EINTERNAL,
                      "%s:%d: the INI library did not return this line as given",
                      config_source(r->c, r->at.file, 1)->label, r->at.line_number);
}

/* Check the line at hand; true if inih is to see a stand-in of it. */
static bool read_line(struct reader *r)
{
    const struct config_line *line = &r->at.line;
    bool good = config_line_good(r->c, &r->at);
    if (good && line->indented) {
        config_error(r->c, config_cursor_place(r->c, &r->at, 0, 0),
                     "the line is indented; start it in column 1, or end the line "
                     "before with '\\' to continue that");
        good = false;
    }
    bool header = line->text[0] == '[';
    if (good)
        good = header ? read_header(r) : read_pair(r);
    else if (header) {
        r->section = NO_SECTION;
        r->in_section = true;
    }
    if (!good && !header && r->section != NO_SECTION)
        r->out->v[r->section].broken = true;
    return good;
}

/* inih's fgets. */
static char *give_line(char *text, int size, void *user)
{
    struct reader *r = user;
    if (r->pending)
        internal_error(r);
    while (r->status == STRATA_OK && !r->c->no_memory && next_line(r)) {
        if (!read_line(r))
            continue;
        bool header = r->at.line.text[0] == '[';
        char *token = header ? r->section_token : r->value_token;
        size_t index = header ? r->section : (size_t)r->at.line_number;
        snprintf(token, sizeof r->section_token, "@%zu", index);
        int n = header ? snprintf(text, (size_t)size, "[%s]\n", token)
                       : snprintf(text, (size_t)size, "%s = %s\n", r->pair.key, token);
        r->pending = !header;
        if (n >= size)
            internal_error(r);
        return text;
    }
    return NULL;
}

static uint32_t key_hash(const char *key)
{
    uint32_t hash = 2166136261u;
    for (; *key; key++)
        hash = (hash ^ (unsigned char)*key) * 16777619u;
    return hash;
}

/* The slot of a key: its earlier pair's, or a free one. */
static struct key_slot *find_key(struct reader *r, const struct config_section *s,
                                 const char *key)
{
    size_t i = key_hash(key) % KEY_SLOTS;
    while (r->keys[i].stamp == r->stamp &&
           strcmp(s->pairs[r->keys[i].pair].key, key) != 0)
        i = (i + 1) % KEY_SLOTS;
    return &r->keys[i];
}

static void add_pair(struct reader *r, struct config_section *s)
{
    struct config_pair *p = &r->pair;
    bool repeats = r->kind->repeat && strcmp(r->kind->repeat, p->key) == 0;
    struct key_slot *slot = find_key(r, s, p->key);
    if (slot->stamp == r->stamp && !repeats) {
        config_error(r->c, p->key_place,
                     "key '%s' stands twice in [%s%s%s]; first at line %d", p->key,
                     s->kind, *s->name ? " " : "", s->name,
                     s->pairs[slot->pair].key_place.line);
    } else if (s->n_pairs >= CONFIG_MAX_KEYS) {
        config_error(r->c, p->key_place, "more than %d keys in [%s%s%s]", CONFIG_MAX_KEYS,
                     s->kind, *s->name ? " " : "", s->name);
        r->section = NO_SECTION;
        s->broken = true;
    } else {
        *slot = (struct key_slot){r->stamp, (uint32_t)s->n_pairs};
        r->status = config_pair_add(s, p, r->err);
    }
}

/* inih's callback for a pair. */
static int take_pair(void *user, const char *section, const char *key, const char *value)
{
    struct reader *r = user;
    if (!r->pending || strcmp(section, r->section_token) != 0 ||
        strcmp(key, r->pair.key) != 0 || strcmp(value, r->value_token) != 0) {
        internal_error(r);
        return 0;
    }
    r->pending = false;
    add_pair(r, &r->out->v[r->section]);
    return 1;
}

int config_read(struct config *c, int index, struct config_sections *out,
                strata_error *err)
{
    struct reader *r = zalloc(1, sizeof *r, "the INI reader", err);
    if (!r)
        return STRATA_ENOMEM;
    const struct config_source *s = config_source(c, index, 1);
    r->c = c;
    r->out = out;
    r->err = err;
    r->at.file = index;
    r->next_line = 1;
    r->section = NO_SECTION;
    if (s->size >= 3 && memcmp(s->text, "\xef\xbb\xbf", 3) == 0)
        r->next = 3;
    int result = ini_parse_stream(give_line, r, take_pair, r);
    if (result != 0 || r->pending)
        internal_error(r);
    int status = r->status;
    free(r);
    return status;
}
