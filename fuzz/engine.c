/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer target: any bytes as an engine file, loaded, and run where that is small. A
 * mutation of its own changes a field of one section, or of the header, and makes sizes
 * and hashes right again: without that nearly every input ends at a hash.
 *
 * Plugins are those of STRATA_PLUGIN_DIR.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include <nettle/sha2.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/file/stored.h"
#include "planner/explain/explain.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed);

enum { RUN_BYTES = 1 << 20, AT_SIZE = 24, AT_HASH = 88, AT_CHECK = 124 };

static void require(int condition, const char *what, const strata_error *err)
{
    if (condition)
        return;
    fprintf(stderr, "%s: status %d: %s\n", what, err ? err->status : 0,
            err ? err->message : "");
    abort();
}

/* ---- the target ------------------------------------------------------------------- */

static strata_registry *registry;
static strata_handle *handle;

static void open_once(void)
{
    strata_error err = {0};
    if (handle)
        return;
    strata_set_logger(NULL, NULL, STRATA_LOG_ERROR);
    if (strata_registry_create(&registry, NULL, &err) != STRATA_OK ||
        strata_create(&handle, "host", &err) != STRATA_OK ||
        registry_load_all(registry, &err) != STRATA_OK) {
        fprintf(stderr, "%s\n", err.message);
        abort();
    }
}

static void run(const strata_engine *e)
{
    strata_error err = {0};
    strata_context *c = NULL;
    int64_t elements = 0;
    const struct execution *x = e->execution;
    for (size_t v = 0; v < x->n_values && elements < RUN_BYTES; v++)
        elements += x->values[v].bytes;
    if (elements >= RUN_BYTES || x->arena_bytes >= RUN_BYTES)
        return;
    int status = strata_context_create(&c, e, handle, &err);
    require(status == err.status, "context", &err);
    if (c)
        status = strata_context_run(c, &err);
    require(status == err.status, "run", &err);
    strata_context_destroy(c);
}

/* A plan that was read can be told again. */
static void describe(const strata_engine *e)
{
    json_t *records = engine_plugin_records(e);
    json_t *plan = engine_plan_json(e, records);
    require(json_array_size(json_object_get(plan, "decisions")) == e->network->n_layers,
            "decisions", NULL);
    json_decref(plan);
    json_decref(records);
}

static void load(const struct engine_file *sound)
{
    strata_error err = {0};
    struct engine_file file = *sound;
    strata_engine *e = NULL;
    int status = engine_load_file(&e, handle, registry, &file, "fuzz.engine", &err);
    require(status == err.status && (status == STRATA_OK) == (e != NULL), "load", &err);
    require(status == STRATA_OK || !strncmp(err.message, "fuzz.engine", 11), "message",
            &err);
    if (e) {
        run(e);
        describe(e);
    }
    strata_engine_destroy(e);
}

/* By way of files: what is sound is written, opened and loaded as it was. */
static void write_again(const struct engine_file *sound)
{
    static char folder[] = "/tmp/strata-fuzz-XXXXXX", path[64];
    struct engine_file f;
    strata_error err = {0};
    strata_engine *e = NULL;
    if (!path[0]) {
        require(mkdtemp(folder) != NULL, "mkdtemp", NULL);
        snprintf(path, sizeof path, "%s/x.engine", folder);
    }
    int status =
        engine_file_write(path, sound->sections, sound->n_sections, "fuzz", &err);
    require(status == STRATA_OK, "write", &err);
    require(engine_file_open(&f, path, &err) == STRATA_OK, "open", &err);
    require(f.n_sections == sound->n_sections, "sections", NULL);
    for (size_t i = 0; i < f.n_sections; i++)
        require(
            f.sections[i].size == sound->sections[i].size &&
                !memcmp(f.sections[i].data, sound->sections[i].data, f.sections[i].size),
            "a section", NULL);
    engine_file_close(&f);
    status = strata_engine_load(&e, handle, registry, path, &err);
    require((status == STRATA_OK) == (e != NULL), "load of a file", &err);
    if (e)
        require(strata_engine_save(e, path, &err) == STRATA_OK, "save", &err);
    strata_engine_destroy(e);
}

/* What `strata inspect` and `strata diff` read. */
static void read_rest(const struct engine_file *f)
{
    json_t *report = NULL;
    struct explain_diff *d = NULL;
    struct cost_table costs;
    const struct engine_section *s = engine_file_find(f, SECTION_COSTS);
    cost_table_init(&costs, "host");
    if (s)
        cost_table_parse(&costs, s->data, s->size, "fuzz.engine", NULL);
    cost_table_free(&costs);
    if (engine_section_json(&report, f, SECTION_REPORT, NULL) == STRATA_OK &&
        explain_compare(&d, report, report, NULL) == STRATA_OK)
        require(d->decisions.n == 0 && d->entries.n == 0, "a plan differs from itself",
                NULL);
    explain_diff_free(d);
    json_decref(report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct engine_file f;
    strata_error err = {0};
    open_once();
    int status = engine_file_parse(&f, data, size, "fuzz.engine", &err);
    require(status == err.status, "parse", &err);
    if (status != STRATA_OK)
        return 0;
    if (f.info.sha256[0] % 16 == 0) /* it takes longer than all else */
        read_rest(&f);
    if (f.info.sha256[0] % 16 == 1)
        write_again(&f);
    load(&f);
    return 0;
}

/* ---- the mutation ----------------------------------------------------------------- */

static void put(uint8_t *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> 8 * i & 0xff);
}

static void make_right(uint8_t *data, size_t size)
{
    struct sha256_ctx hash;
    uint8_t check[SHA256_DIGEST_SIZE];
    sha256_init(&hash); /* of one piece: inputs are shorter than 1 MiB */
    sha256_update(&hash, size - ENGINE_FILE_HEADER, data + ENGINE_FILE_HEADER);
    sha256_digest(&hash, SHA256_DIGEST_SIZE, check);
    sha256_update(&hash, sizeof check, check);
    sha256_digest(&hash, SHA256_DIGEST_SIZE, data + AT_HASH);
    sha256_update(&hash, AT_CHECK, data);
    sha256_digest(&hash, SHA256_DIGEST_SIZE, check);
    memcpy(data + AT_CHECK, check, ENGINE_FILE_HEADER - AT_CHECK);
}

/* A section written with its size, padded, behind `end`; the new end, 0: no room. */
static size_t place(uint8_t *out, size_t end, size_t max_size, size_t index,
                    const struct engine_section *s)
{
    uint8_t *entry = out + ENGINE_FILE_HEADER + index * ENGINE_FILE_ENTRY;
    size_t begin =
        (end + ENGINE_FILE_ALIGNMENT - 1) / ENGINE_FILE_ALIGNMENT * ENGINE_FILE_ALIGNMENT;
    if (begin > max_size || s->size > max_size - begin)
        return 0;
    memset(out + end, 0, begin - end);
    if (s->size)
        memcpy(out + begin, s->data, s->size);
    memset(entry, 0, ENGINE_FILE_ENTRY);
    memcpy(entry, s->name, sizeof s->name);
    put(entry + 16, begin, 8);
    put(entry + 24, s->size, 8);
    return begin + s->size;
}

/* The file with other sections; 0: no room. */
static size_t pack(uint8_t *out, size_t max_size, const uint8_t *header,
                   const struct engine_section *sections, size_t n)
{
    size_t end = ENGINE_FILE_HEADER + n * ENGINE_FILE_ENTRY;
    if (end > max_size)
        return 0;
    memcpy(out, header, ENGINE_FILE_HEADER);
    for (size_t i = 0; i < n && end; i++)
        end = place(out, end, max_size, i, &sections[i]);
    if (!end)
        return 0;
    put(out + 20, n, 4);
    put(out + AT_SIZE, end, 8);
    make_right(out, end);
    return end;
}

static const char *const words[] = {"0",
                                    "-1",
                                    "1",
                                    "2147483647",
                                    "-2147483648",
                                    "4294967296",
                                    "1e308",
                                    "1e-400",
                                    "null",
                                    "true",
                                    "[]",
                                    "{}",
                                    "\"\"",
                                    "\"run\"",
                                    "\"absorbed\"",
                                    "\"alias\"",
                                    "\"join\"",
                                    "fp16:nhwc8",
                                    "nan",
                                    "int8:nc/32hw32",
                                    "fp32:nhwc",
                                    "fp32:nchw",
                                    "u8:nhwc",
                                    "9223372036854775807"};

static int is_word(uint8_t ch)
{
    return (ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'z') || ch == '-' ||
           ch == '.' || ch == '_' || (ch >= 'A' && ch <= 'Z');
}

/* Exchange the word around a place for another, of a list or of the text itself. */
static size_t change_word(uint8_t *text, size_t size, size_t room)
{
    size_t at = (size_t)rand() % size, end, n, from;
    const uint8_t *by;
    while (at > 0 && !is_word(text[at]))
        at--;
    while (at > 0 && is_word(text[at - 1]))
        at--;
    for (end = at; end < size && is_word(text[end]);)
        end++;
    if (rand() % 2) {
        by = (const uint8_t *)words[(size_t)rand() % (sizeof words / sizeof *words)];
        n = strlen((const char *)by);
    } else {
        for (from = (size_t)rand() % size; from > 0 && is_word(text[from - 1]);)
            from--;
        for (n = 0; from + n < size && n < 64 && is_word(text[from + n]);)
            n++;
        by = text + from;
    }
    uint8_t copy[64];
    if (n > sizeof copy || size - (end - at) + n > room)
        return size;
    memcpy(copy, by, n);
    memmove(text + at + n, text + end, size - end);
    memcpy(text + at, copy, n);
    return size - (end - at) + n;
}

/* Take a line away, or have it twice. */
static size_t change_line(uint8_t *text, size_t size, size_t room)
{
    size_t at = (size_t)rand() % size;
    while (at > 0 && text[at - 1] != '\n')
        at--;
    const uint8_t *newline = memchr(text + at, '\n', size - at);
    size_t n = newline ? (size_t)(newline - (text + at)) + 1 : size - at;
    if (rand() % 2 || size + n > room) {
        memmove(text + at, text + at + n, size - at - n);
        return size - n;
    }
    memmove(text + at + n, text + at, size - at);
    return size + n;
}

static size_t change(uint8_t *text, size_t size, size_t room)
{
    int how = rand() % 8;
    if (size == 0 || how == 0)
        return LLVMFuzzerMutate(text, size, room);
    return how == 1 ? change_line(text, size, room) : change_word(text, size, room);
}

/* Drop a section, change one of the header's bytes, or change a section. */
static size_t mutate_sections(struct engine_file *f, uint8_t *header, uint8_t *scratch,
                              size_t room, uint8_t *out, size_t max_size)
{
    size_t i = (size_t)rand() % f->n_sections;
    struct engine_section *s = &f->sections[i];
    int how = rand() % 64;
    if (how == 0 && f->n_sections > 1)
        f->sections[i] = f->sections[--f->n_sections];
    else if (how == 1)
        header[12 + rand() % 76] ^= (uint8_t)(1 << rand() % 8);
    else if (s->size <= room) {
        if (s->size)
            memcpy(scratch, s->data, s->size);
        size_t size = s->size;
        for (int k = rand() % 3; k >= 0; k--)
            size = change(scratch, size, room);
        s->data = scratch;
        s->size = size;
    }
    return pack(out, max_size, header, f->sections, f->n_sections);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct engine_file f;
    uint8_t header[ENGINE_FILE_HEADER];
    srand(seed);
    if (engine_file_parse(&f, data, size, "", NULL) != STRATA_OK || rand() % 128 == 0) {
        size = LLVMFuzzerMutate(data, size, max_size);
        if (size >= ENGINE_FILE_HEADER)
            make_right(data, size);
        return size;
    }
    memcpy(header, data, sizeof header);
    size_t room = max_size, packed = 0;
    uint8_t *scratch = malloc(room), *out = malloc(max_size);
    if (scratch && out)
        packed = mutate_sections(&f, header, scratch, room, out, max_size);
    if (packed)
        memcpy(data, out, packed);
    free(scratch);
    free(out);
    return packed ? packed : size;
}
