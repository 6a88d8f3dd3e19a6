/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of costs and their text form. A file is meant to be read, compared, edited and
 * kept in version control:
 *
 *   strata-costs 1
 *   device host
 *   # NS SPREAD RUNS KEY, sorted by KEY
 *   48211 310 5 reformat fp32:nchw>fp32:nhwc 1x64x55x55 threads=2
 */
#include "planner/cost/cost.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/file.h"

#define MAX_LINE (COST_KEY_MAX + 64)

void cost_table_init(struct cost_table *t, const char *device)
{
    *t = (struct cost_table){.n = 0};
    snprintf(t->device, sizeof t->device, "%s", device);
}

void cost_table_free(struct cost_table *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->entries[i].key);
    free(t->entries);
    *t = (struct cost_table){.n = 0};
}

/* Where the key is, or belongs. */
static size_t position(const struct cost_table *t, const char *key)
{
    size_t low = 0, high = t->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(t->entries[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct cost *cost_table_find(const struct cost_table *t, const char *key)
{
    size_t at = position(t, key);
    bool found = at < t->n && strcmp(t->entries[at].key, key) == 0;
    return found ? &t->entries[at].cost : NULL;
}

int cost_table_put(struct cost_table *t, const char *key, struct cost cost,
                   strata_error *err)
{
    size_t at = position(t, key);
    if (at < t->n && strcmp(t->entries[at].key, key) == 0) {
        t->entries[at].cost = cost;
        return STRATA_OK;
    }
    int status = grow(&t->entries, &t->capacity, t->n, sizeof *t->entries, err);
    char *copy = status == STRATA_OK ? duplicate(key, err) : NULL;
    if (!copy)
        return STRATA_ENOMEM;
    memmove(&t->entries[at + 1], &t->entries[at], (t->n - at) * sizeof *t->entries);
    t->entries[at] = (struct cost_entry){copy, cost};
    t->n++;
    return STRATA_OK;
}

bool cost_is_better(const struct cost *a, const struct cost *b)
{
    return a->runs != b->runs ? a->runs > b->runs : a->ns < b->ns;
}

int cost_table_merge(struct cost_table *t, const struct cost_table *other,
                     strata_error *err)
{
    if (strcmp(t->device, other->device) != 0)
        return error_set(err, STRATA_EMISMATCH,
                         "costs of device '%s' cannot join those of '%s'; keep one cost "
                         "file for each device",
                         other->device, t->device);
    int status = STRATA_OK;
    for (size_t i = 0; i < other->n && status == STRATA_OK; i++) {
        const struct cost_entry *e = &other->entries[i];
        const struct cost *known = cost_table_find(t, e->key);
        if (!known || cost_is_better(&e->cost, known))
            status = cost_table_put(t, e->key, e->cost, err);
    }
    return status;
}

/* ---- reading -------------------------------------------------------------------------
 */

struct reader {
    const char *path;
    int line;
    strata_error *err;
};

static int refuse(const struct reader *r, const char *format, ...) PRINTF_LIKE(2, 3);
static int refuse(const struct reader *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    error_set_va(r->err, STRATA_EPARSE, format, args);
    va_end(args);
    error_prefix(r->err, "%s:%d: error", r->path, r->line);
    return STRATA_EPARSE;
}

/* A whole number without sign or leading zeros, then one blank; NULL after refusing. */
static const char *read_number(const struct reader *r, const char *at, const char *what,
                               int64_t min, int64_t max, int64_t *out)
{
    size_t digits = strspn(at, "0123456789");
    int64_t value = 0;
    if (digits == 0 || digits > 18 || (digits > 1 && at[0] == '0') || at[digits] != ' ') {
        refuse(r, "%s is missing: a line is NS SPREAD RUNS KEY, with one blank between",
               what);
        return NULL;
    }
    for (size_t i = 0; i < digits; i++)
        value = 10 * value + (at[i] - '0');
    if (value < min || value > max) {
        refuse(r, "%s %lld: %lld to %lld is allowed", what, (long long)value,
               (long long)min, (long long)max);
        return NULL;
    }
    *out = value;
    return at + digits + 1;
}

/* "run ..." or "reformat ...", words of printable ASCII. */
static int check_key(const struct reader *r, const char *key)
{
    size_t n = strlen(key);
    if (strncmp(key, "run ", 4) != 0 && strncmp(key, "reformat ", 9) != 0)
        return refuse(r, "a key begins with 'run ' or 'reformat '");
    if (n > COST_KEY_MAX)
        return refuse(r, "a key of %zu bytes; at most %d are allowed", n, COST_KEY_MAX);
    for (size_t i = 0; i < n; i++)
        if (key[i] < ' ' || key[i] > '~')
            return refuse(r, "character 0x%02x in a key", (unsigned char)key[i]);
    if (key[n - 1] == ' ')
        return refuse(r, "a blank at the end of the key");
    return STRATA_OK;
}

static int read_entry(const struct reader *r, struct cost_table *t, const char *line)
{
    int64_t ns, spread, runs;
    const char *at = read_number(r, line, "the time", 1, COST_NS_MAX, &ns);
    if (at)
        at = read_number(r, at, "the spread", 0, COST_NS_MAX, &spread);
    if (at)
        at = read_number(r, at, "the number of runs", 1, 1000000, &runs);
    if (!at || check_key(r, at) != STRATA_OK)
        return STRATA_EPARSE;
    int order = t->n ? strcmp(t->entries[t->n - 1].key, at) : -1;
    if (order == 0)
        return refuse(r, "the key stands twice; remove one of the lines");
    if (order > 0)
        return refuse(r, "the keys are not sorted; sort the lines by key, as bytes");
    return cost_table_put(t, at, (struct cost){ns, spread, (int)runs}, r->err);
}

static int read_header(const struct reader *r, struct cost_table *t, const char *line)
{
    if (r->line == 1 && strncmp(line, "strata-costs ", 13) != 0)
        return refuse(r, "no cost file: the first line must be 'strata-costs 1'");
    if (r->line == 1 && strcmp(line + 13, "1") != 0)
        return refuse(r, "format '%.20s' of the file; this library reads 1", line + 13);
    if (r->line == 1)
        return STRATA_OK;
    if (strncmp(line, "device ", 7) != 0 || !line[7])
        return refuse(r, "the second line must be 'device NAME'");
    if (strlen(line + 7) >= sizeof t->device)
        return refuse(r, "a device's name has at most %zu bytes", sizeof t->device - 1);
    for (const char *c = line + 7; *c; c++)
        if (*c < ' ' || *c > '~')
            return refuse(r, "character 0x%02x in the device's name", (unsigned char)*c);
    if (t->device[0] && strcmp(t->device, line + 7) != 0)
        return refuse(r,
                      "costs of device '%s', but the plan is for '%s'; measure them "
                      "there, or name another file",
                      line + 7, t->device);
    snprintf(t->device, sizeof t->device, "%s", line + 7);
    return STRATA_OK;
}

static int read_line(const struct reader *r, struct cost_table *t, const char *line,
                     size_t n)
{
    if (strlen(line) != n)
        return refuse(r, "a NUL byte");
    if (r->line <= 2)
        return read_header(r, t, line);
    if (line[0] == '#' || n == 0)
        return STRATA_OK;
    return read_entry(r, t, line);
}

int cost_table_parse(struct cost_table *t, const char *text, size_t size,
                     const char *path, strata_error *err)
{
    char line[MAX_LINE + 1];
    struct reader r = {path, 0, err};
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t n = end ? (size_t)(end - (text + at)) : size - at;
        r.line++;
        if (!end)
            return refuse(&r, "the last line has no end; the file may be cut short");
        if (n > MAX_LINE)
            return refuse(&r, "a line of %zu bytes; at most %d are allowed", n, MAX_LINE);
        memcpy(line, text + at, n);
        line[n] = '\0';
        int status = read_line(&r, t, line, n);
        if (status != STRATA_OK)
            return status;
        at += n + 1;
    }
    r.line++;
    return r.line <= 2 ? refuse(&r, "the file ends before its header is complete")
                       : STRATA_OK;
}

int cost_table_read(struct cost_table *t, const char *path, strata_error *err)
{
    struct file_bytes bytes = {0};
    int status = file_read(&bytes, path, COST_FILE_MAX, err);
    if (status == STRATA_OK)
        status = cost_table_parse(t, bytes.data, bytes.size, path, err);
    file_free(&bytes);
    return status;
}

/* ---- writing -------------------------------------------------------------------------
 */

int cost_table_text(char **text, size_t *size, const struct cost_table *t,
                    strata_error *err)
{
    *text = NULL;
    FILE *f = open_memstream(text, size);
    if (!f)
        return error_no_memory(err, 0, "a cost file");
    fprintf(f, "strata-costs 1\ndevice %s\n# NS SPREAD RUNS KEY, sorted by KEY\n",
            t->device);
    for (size_t i = 0; i < t->n; i++)
        fprintf(f, "%lld %lld %d %s\n", (long long)t->entries[i].cost.ns,
                (long long)t->entries[i].cost.spread, t->entries[i].cost.runs,
                t->entries[i].key);
    bool failed = ferror(f) != 0;
    failed |= fclose(f) != 0;
    if (!failed)
        return STRATA_OK;
    free(*text);
    *text = NULL;
    return error_no_memory(err, 0, "a cost file");
}

size_t cost_table_bytes(const struct cost_table *t)
{
    size_t bytes = 0;
    for (size_t i = 0; i < t->n; i++)
        bytes += strlen(t->entries[i].key) + sizeof "10000 1000 10 \n";
    return bytes;
}

int cost_table_write(const struct cost_table *t, const char *path, strata_error *err)
{
    char *text;
    size_t size = 0;
    int status = cost_table_text(&text, &size, t, err);
    if (status == STRATA_OK)
        status = file_write(path, text, size, err);
    free(text);
    return status;
}
