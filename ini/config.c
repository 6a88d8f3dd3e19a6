/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading a configuration: files and what they include, variables, overrides; access to
 * sections and pairs.
 */
#include "ini/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "ini/private.h"
#include "io/file.h"

#define IDENTITY 40 /* bytes */

/* ---- files ---- */

/* Put a file's text into the config; *out is its index. The text's owner changes. */
static int add_file(struct config *c, const char *label, struct file_bytes *bytes,
                    int includer, int *out, strata_error *err)
{
    int status = grow(&c->files, &c->files_capacity, c->n_files, sizeof *c->files, err);
    char *copy = status == STRATA_OK ? duplicate(label, err) : NULL;
    if (!copy)
        return STRATA_ENOMEM;
    struct config_source *s = &c->files[c->n_files];
    *s = (struct config_source){
        .label = copy, .text = bytes->data, .size = bytes->size, .includer = includer};
    if (s->size >= 3 && memcmp(s->text, "\xef\xbb\xbf", 3) == 0) {
        s->size -= 3;
        memmove(s->text, s->text + 3, s->size + 1);
    }
    c->bytes_read += bytes->size;
    *bytes = (struct file_bytes){0};
    *out = (int)c->n_files++;
    return STRATA_OK;
}

/* What tells a file whatever its path. */
static size_t identity(char out[IDENTITY], const struct stat *about)
{
    return (size_t)snprintf(out, IDENTITY, "%jx:%jx", (uintmax_t)about->st_dev,
                            (uintmax_t)about->st_ino);
}

/* Note which file number `index` is. */
static int note_identity(struct config *c, int index, const struct stat *about,
                         strata_error *err)
{
    char text[IDENTITY];
    c->files[index].on_disk = true;
    char *key = config_text(c, text, identity(text, about));
    return key ? names_put(&c->file_index, key, index, err)
               : error_no_memory(err, IDENTITY, "a file's identity");
}

/* Read a file the config does not hold yet: `name` in folder `base` and nowhere else, or
 * with base NULL any file. */
static int open_file(struct config *c, const char *base, const char *name, int includer,
                     int *out, strata_error *err)
{
    struct file_bytes bytes = {0};
    struct stat about;
    uint64_t limit = CONFIG_MAX_BYTES - c->bytes_read;
    char *path = NULL;
    int status = base ? file_read_beneath(&bytes, &path, base, name, 0, limit, err)
                      : file_read(&bytes, name, limit, err);
    const char *label = base ? path : name;
    if (status == STRATA_OK)
        status = add_file(c, label, &bytes, includer, out, err);
    if (status == STRATA_OK && stat(label, &about) == 0)
        status = note_identity(c, *out, &about, err);
    file_free(&bytes);
    free(path);
    return status;
}

/* Index of a file that was read already, by identity, or -1. */
static int known_file(const struct config *c, const char *path)
{
    char key[IDENTITY];
    struct stat about;
    if (stat(path, &about) != 0)
        return -1;
    identity(key, &about);
    return names_get(&c->file_index, key);
}

/* ---- includes ---- */

/* "a.ini -> b.ini -> a.ini", from `from` down to `to` and back. */
static void chain_of(const struct config *c, int from, int to, char *out, size_t size)
{
    int path[CONFIG_MAX_DEPTH], n = 0;
    for (int f = to; f >= 0 && n < CONFIG_MAX_DEPTH; f = c->files[f].includer) {
        path[n++] = f;
        if (f == from)
            break;
    }
    size_t used = 0;
    while (n-- > 0 && used < size)
        used +=
            (size_t)snprintf(out + used, size - used, "%s -> ", c->files[path[n]].label);
    if (used < size)
        snprintf(out + used, size - used, "%s", c->files[from].label);
}

static int depth_of(const struct config *c, int file)
{
    int depth = 0;
    for (; file >= 0; file = c->files[file].includer)
        depth++;
    return depth;
}

static bool includes(const struct config *c, int outer, int inner)
{
    while (inner >= 0 && inner != outer)
        inner = c->files[inner].includer;
    return inner == outer;
}

/* Whether the file may be included now; records why not. */
static bool may_include(struct config *c, const struct config_pair *p, const char *path,
                        int from)
{
    char chain[512];
    int known = known_file(c, path);
    if (known >= 0 && includes(c, known, from)) {
        chain_of(c, known, from, chain, sizeof chain);
        config_error(c, p->value_place, "the files include each other: %s", chain);
    } else if (known >= 0) {
        config_error(c, p->value_place, "'%s' was included before", path);
    } else if (depth_of(c, from) >= CONFIG_MAX_DEPTH) {
        config_error(c, p->value_place, "includes nest deeper than %d files",
                     CONFIG_MAX_DEPTH);
    } else if (c->n_files >= CONFIG_MAX_FILES) {
        config_error(c, p->value_place, "more than %d files", CONFIG_MAX_FILES);
    } else {
        return true;
    }
    return false;
}

static int load_sections(struct config *c, int file, strata_error *err);

/* Read what one `file =` names. Trouble with the file is an error in the INI text.
 * Mutual recursion with load_sections (config.c): may_include ends it, as files nest at
 * most CONFIG_MAX_DEPTH deep and none is read twice. */
static int include_file(struct config *c, struct config_pair *p, strata_error *err)
{
    strata_error why = {0};
    char *base = NULL, *path = NULL;
    int from = p->value_place.file, index, status = STRATA_OK;
    if (!c->files[from].on_disk) {
        config_error(c, p->value_place, "text in memory cannot include files");
        return STRATA_OK;
    }
    base = file_folder(c->files[from].label, &why);
    if (!base || file_resolve(&path, base, p->value, 0, &why) != STRATA_OK) {
        config_error(c, p->value_place, "cannot include: %s", why.message);
        goto done;
    }
    if (!may_include(c, p, path, from))
        goto done;
    if (open_file(c, base, p->value, from, &index, &why) != STRATA_OK)
        config_error(c, p->value_place, "cannot include: %s", why.message);
    else
        status = load_sections(c, index, err);
done:
    free(base);
    free(path);
    return why.status == STRATA_ENOMEM ? error_no_memory(err, 0, "an include") : status;
}

static int include_all(struct config *c, struct config_section *s, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; status == STRATA_OK && i < s->n_pairs; i++) {
        struct config_pair *p = &s->pairs[i];
        if (strcmp(p->key, "file") != 0) {
            config_error(c, p->key_place,
                         "unknown key '%s' in [include]; the key is "
                         "'file'",
                         p->key);
            continue;
        }
        size_t before = c->n_errors;
        config_expand(c, p);
        if (c->n_errors == before)
            status = include_file(c, p, err);
    }
    return status;
}

/* ---- sections ---- */

static void free_sections(struct config_section *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(v[i].pairs);
    free(v);
}

/* Read one file's sections into the config; those of an included file come where its
 * [include] stands. Mutual recursion with include_file (config.c): see there why it ends.
 */
static int load_sections(struct config *c, int file, strata_error *err)
{
    struct config_sections own = {0};
    size_t i = 0;
    int status = config_read(c, file, &own, err);
    for (size_t v = 0; status == STRATA_OK && v < own.n; v++)
        if (strcmp(own.v[v].kind, "vars") == 0)
            config_define_section(c, &own.v[v]);
    for (; status == STRATA_OK && i < own.n; i++) {
        if (strcmp(own.v[i].kind, "include") == 0)
            status = include_all(c, &own.v[i], err);
        if (status == STRATA_OK)
            status = grow(&c->sections, &c->sections_capacity, c->n_sections,
                          sizeof *c->sections, err);
        if (status != STRATA_OK)
            break;
        c->sections[c->n_sections++] = own.v[i];
        own.v[i].pairs = NULL;
    }
    free_sections(own.v, own.n);
    return status;
}

/* The index of sections, now that their order stands. */
static int index_sections(struct config *c, strata_error *err)
{
    names_free(&c->section_index);
    for (size_t i = 0; i < c->n_sections; i++) {
        struct config_section *s = &c->sections[i];
        char *full = config_header_name(c, s->kind, s->name);
        if (!full)
            return error_no_memory(err, 0, "names of sections");
        if (names_get(&c->section_index, full) < 0 &&
            names_put(&c->section_index, full, (int)i, err) != STRATA_OK)
            return STRATA_ENOMEM;
    }
    return STRATA_OK;
}

/* ---- options ---- */

static int add_override(struct config *c, const char *prefix, const char *text,
                        strata_error *err)
{
    struct config_source *s = &c->overrides[c->n_overrides];
    size_t size = strlen(prefix) + strlen(text) + 1;
    s->size = strnlen(text, CONFIG_MAX_LINE + 1);
    s->text = strndup(text, s->size);
    s->label = malloc(size);
    s->includer = -1;
    c->n_overrides++;
    if (!s->text || !s->label)
        return error_no_memory(err, size, "an override");
    snprintf(s->label, size, "%s%s", prefix, text);
    for (char *ch = s->label; *ch; ch++)
        if ((unsigned char)*ch < 0x20 || *ch == 0x7f)
            *ch = ' ';
    if (strlen(s->label) > 100)
        s->label[100] = '\0';
    return STRATA_OK;
}

static int add_overrides(struct config *c, const strata_network_options *options,
                         strata_error *err)
{
    size_t n = options ? options->n_set + options->n_define : 0;
    int status = STRATA_OK;
    c->overrides = zalloc(n, sizeof *c->overrides, "overrides", err);
    if (!c->overrides)
        return STRATA_ENOMEM;
    for (size_t i = 0; status == STRATA_OK && i < n; i++)
        status = i < options->n_set
                     ? add_override(c, "--set ", options->set[i], err)
                     : add_override(c, "-D ", options->define[i - options->n_set], err);
    return status;
}

/* Everything once file 0 is there. */
static int load(struct config *c, const strata_network_options *options,
                strata_error *err)
{
    config_define_options(c, options);
    int status = load_sections(c, 0, err);
    if (status == STRATA_OK)
        status = index_sections(c, err);
    if (status == STRATA_OK)
        status = config_override(c, options, err);
    if (status != STRATA_OK)
        return c->no_memory ? error_no_memory(err, 0, "the configuration") : status;
    config_expand_all(c);
    config_check_options(c);
    return c->no_memory ? error_no_memory(err, 0, "the configuration") : STRATA_OK;
}

int config_load(struct config **out, const char *path,
                const strata_network_options *options, strata_error *err)
{
    int file, status;
    struct config *c = zalloc(1, sizeof *c, "a configuration", err);
    *out = NULL;
    if (!c)
        return STRATA_ENOMEM;
    if ((status = add_overrides(c, options, err)) != STRATA_OK ||
        (status = open_file(c, NULL, path, -1, &file, err)) != STRATA_OK ||
        (status = load(c, options, err)) != STRATA_OK)
        goto done;
    *out = c;
    c = NULL;
done:
    config_free(c);
    return status;
}

int config_parse(struct config **out, const char *text, size_t size, const char *name,
                 const strata_network_options *options, strata_error *err)
{
    struct file_bytes bytes = {0};
    int file, status = STRATA_OK;
    struct config *c = zalloc(1, sizeof *c, "a configuration", err);
    *out = NULL;
    if (!c)
        return STRATA_ENOMEM;
    if (size > CONFIG_MAX_BYTES)
        status = error_set(err, STRATA_EPARSE, "%s: %zu bytes; at most %d are allowed",
                           name, size, CONFIG_MAX_BYTES);
    if (status == STRATA_OK && !(bytes.data = zalloc(size + 1, 1, name, err)))
        status = STRATA_ENOMEM;
    if (status != STRATA_OK)
        goto done;
    if (size)
        memcpy(bytes.data, text, size);
    bytes.size = size;
    if ((status = add_overrides(c, options, err)) != STRATA_OK ||
        (status = add_file(c, name, &bytes, -1, &file, err)) != STRATA_OK ||
        (status = load(c, options, err)) != STRATA_OK)
        goto done;
    *out = c;
    c = NULL;
done:
    free(bytes.data);
    config_free(c);
    return status;
}

static void free_sources(struct config_source *v, size_t n)
{
    for (size_t i = 0; v && i < n; i++) {
        free(v[i].label);
        free(v[i].text);
    }
    free(v);
}

void config_free(struct config *c)
{
    if (!c)
        return;
    free_sources(c->files, c->n_files);
    free_sources(c->overrides, c->n_overrides);
    free_sections(c->sections, c->n_sections);
    free(c->headers);
    free(c->variables);
    free(c->symbols);
    names_free(&c->file_index);
    names_free(&c->section_index);
    names_free(&c->variable_index);
    names_free(&c->symbol_index);
    config_text_free(c);
    for (size_t i = 0; i < CONFIG_MAX_ERRORS; i++)
        free(c->messages[i].text);
    free(c);
}

/* ---- access ---- */

size_t config_sections(const struct config *c)
{
    return c->n_sections;
}

struct config_section *config_section(struct config *c, size_t i)
{
    return i < c->n_sections ? &c->sections[i] : NULL;
}

struct config_section *config_find(struct config *c, const char *kind)
{
    int i = names_get(&c->section_index, kind);
    return i < 0 ? NULL : &c->sections[i];
}

bool config_has(const struct config *c, const char *kind, const char *name)
{
    char full[CONFIG_MAX_NAME + 32];
    int n = snprintf(full, sizeof full, "%s %s", kind, name);
    return (size_t)n < sizeof full && names_get(&c->section_index, full) >= 0;
}

const char *config_file(const struct config *c, int file)
{
    return c->files[file >= 0 && (size_t)file < c->n_files ? file : 0].label;
}

bool config_reads(const struct config *c, const char *path)
{
    return known_file(c, path) >= 0;
}

uint64_t config_hash(const struct config *c)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < c->n_files; i++) {
        const unsigned char *text = (const unsigned char *)c->files[i].text;
        const size_t n = c->files[i].size + (i + 1 < c->n_files);
        for (size_t k = 0; k < n; k++)
            hash = (hash ^ text[k]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

struct config_pair *config_get(struct config_section *s, const char *key)
{
    for (size_t i = 0; s && i < s->n_pairs; i++)
        if (strcmp(s->pairs[i].key, key) == 0) {
            s->pairs[i].used = true;
            return &s->pairs[i];
        }
    return NULL;
}

struct config_pair *config_require(struct config *c, struct config_section *s,
                                   const char *key)
{
    struct config_pair *p = config_get(s, key);
    if (!p && !s->broken)
        config_error(c, s->place, "[%s%s%s] lacks '%s ='", s->kind, *s->name ? " " : "",
                     s->name, key);
    return p;
}

/* "; it takes a, b", where a message has room for them. */
static const char *list_names(char *text, size_t size, const char *const *names, size_t n)
{
    enum { MOST = 8 };
    size_t used = 0;
    *text = '\0';
    for (size_t i = 0; i < n && n <= MOST && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s",
                                 i ? ", " : "; it takes ", names[i]);
    return text;
}

void config_unknown(struct config *c, const struct config_section *s,
                    const char *const *names, size_t n)
{
    char list[256];
    for (size_t i = 0; i < s->n_pairs; i++) {
        const struct config_pair *p = &s->pairs[i];
        if (p->used)
            continue;
        const char *near = config_nearest(c, p->key, names, n);
        config_error(c, p->key_place, "unknown key '%s' in [%s%s%s]%s%s%s", p->key,
                     s->kind, *s->name ? " " : "", s->name,
                     near ? "; did you mean '" : list_names(list, sizeof list, names, n),
                     near ? near : "", near ? "'?" : "");
    }
}
