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

#include "io/stream.h"
#include "io/file.h"
#include "io/lines.h"

#define LONGEST (COST_KEY_MAX + 64) /* line */
#define HEADERS 2                   /* lines */

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

size_t cost_table_loaded(const struct cost_table *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += t->entries[i].cost.loaded;
    return n;
}

int cost_table_part(struct cost_table *out, const struct cost_table *t, bool loaded,
                    strata_error *err)
{
    int status = STRATA_OK;
    cost_table_init(out, t->device);
    for (size_t i = 0; i < t->n && status == STRATA_OK; i++)
        if (t->entries[i].cost.loaded == loaded)
            status = cost_table_put(out, t->entries[i].key, t->entries[i].cost, err);
    return status;
}

bool cost_is_better(const struct cost *a, const struct cost *b)
{
    if (a->loaded != b->loaded)
        return b->loaded;
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

static const char *read_number(const struct lines *l, const char *at, const char *what,
                               int64_t min, int64_t max, int64_t *out)
{
    const char *end = lines_number(at, out);
    if (!end)
        lines_refuse(
            l, "%s is missing: a line is NS SPREAD RUNS KEY, with one blank between",
            what);
    else if (*out < min || *out > max)
        lines_refuse(l, "%s %lld: %lld to %lld is allowed", what, (long long)*out,
                     (long long)min, (long long)max);
    else
        return end;
    return NULL;
}

/* "run ..." or "reformat ...", words of printable ASCII. */
static int check_key(const struct lines *l, const char *key)
{
    size_t n = strlen(key);
    if (strncmp(key, "run ", 4) != 0 && strncmp(key, "reformat ", 9) != 0)
        return lines_refuse(l, "a key begins with 'run ' or 'reformat '");
    if (n > COST_KEY_MAX)
        return lines_refuse(l, "a key of %zu bytes; at most %d are allowed", n,
                            COST_KEY_MAX);
    for (size_t i = 0; i < n; i++)
        if (key[i] < ' ' || key[i] > '~')
            return lines_refuse(l, "character 0x%02x in a key", (unsigned char)key[i]);
    if (key[n - 1] == ' ')
        return lines_refuse(l, "a blank at the end of the key");
    return STRATA_OK;
}

static int read_entry(const struct lines *l, struct cost_table *t, const char *line)
{
    int64_t ns, spread, runs;
    const char *at = read_number(l, line, "the time", 1, COST_NS_MAX, &ns);
    if (at)
        at = read_number(l, at, "the spread", 0, COST_NS_MAX, &spread);
    if (at)
        at = read_number(l, at, "the number of runs", 1, 1000000, &runs);
    if (!at || check_key(l, at) != STRATA_OK)
        return STRATA_EPARSE;
    int order = t->n ? strcmp(t->entries[t->n - 1].key, at) : -1;
    if (order == 0)
        return lines_refuse(l, "the key stands twice; remove one of the lines");
    if (order > 0)
        return lines_refuse(l,
                            "the keys are not sorted; sort the lines by key, as bytes");
    return cost_table_put(t, at, (struct cost){ns, spread, (int)runs, false}, l->err);
}

static int read_header(const struct lines *l, struct cost_table *t, const char *line)
{
    if (l->line == 1 && strncmp(line, "strata-costs ", 13) != 0)
        return lines_refuse(l, "no cost file: the first line must be 'strata-costs 1'");
    if (l->line == 1 && strcmp(line + 13, "1") != 0)
        return lines_refuse(l, "format '%.20s' of the file; this library reads 1",
                            line + 13);
    if (l->line == 1)
        return STRATA_OK;
    if (strncmp(line, "device ", 7) != 0 || !line[7])
        return lines_refuse(l, "the second line must be 'device NAME'");
    if (strlen(line + 7) >= sizeof t->device)
        return lines_refuse(l, "a device's name has at most %zu bytes",
                            sizeof t->device - 1);
    for (const char *c = line + 7; *c; c++)
        if (*c < ' ' || *c > '~')
            return lines_refuse(l, "character 0x%02x in the device's name",
                                (unsigned char)*c);
    if (t->device[0] && strcmp(t->device, line + 7) != 0)
        return lines_refuse(
            l,
            "costs of device '%s', but the plan is for '%s'; measure them "
            "there, or name another file",
            line + 7, t->device);
    snprintf(t->device, sizeof t->device, "%s", line + 7);
    return STRATA_OK;
}

static int read_line(void *of, const struct lines *l, const char *line)
{
    return l->line <= HEADERS ? read_header(l, of, line) : read_entry(l, of, line);
}

int cost_table_parse(struct cost_table *t, const char *text, size_t size,
                     const char *path, strata_error *err)
{
    return lines_parse(text, size, path, HEADERS, LONGEST, read_line, t, err);
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
    FILE *f = text_stream(text, size);
    if (!f)
        return error_no_memory(err, 0, "a cost file");
    fprintf(f, "strata-costs 1\ndevice %s\n# NS SPREAD RUNS KEY, sorted by KEY\n",
            t->device);
    for (size_t i = 0; i < t->n; i++)
        fprintf(f, "%lld %lld %d %s\n", (long long)t->entries[i].cost.ns,
                (long long)t->entries[i].cost.spread, t->entries[i].cost.runs,
                t->entries[i].key);
    return text_finish(f, text) ? STRATA_OK : error_no_memory(err, 0, "a cost file");
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
