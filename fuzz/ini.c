/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer target: any text as an INI file, read by every typed getter. Leading lines
 * that start with '+' or '-' are --set and -D options. Text that then starts with '@' is
 * put into files: net.ini up to the next '@', then a.inc and b.inc.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ini/config.h"

#define OPTIONS_MAX 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

/* Take leading option lines off the text; the copies are the caller's. */
static size_t take_options(const uint8_t **data, size_t *size, char sign, char **out)
{
    size_t n = 0;
    while (n < OPTIONS_MAX && *size && **data == (uint8_t)sign) {
        const uint8_t *end = memchr(*data, '\n', *size);
        size_t length = end ? (size_t)(end - *data) : *size;
        out[n++] = strndup((const char *)*data + 1, length - 1);
        *data += length + (end != NULL);
        *size -= length + (end != NULL);
    }
    return n;
}

/* What fails has been told, now or where a variable or [profile] was wrong. */
static void check(const struct config *c, bool good, size_t before)
{
    require(good ? config_errors(c) == before : config_errors(c) > 0);
}

static void read_value(struct config *c, const struct config_pair *p)
{
    struct config_item *items;
    int64_t integers[16];
    double reals[16];
    uint64_t number;
    size_t n, length = strlen(p->value), before;
    bool flag;
    int index;
    struct config_place place = config_value_place(c, p, length / 2, 1);
    require(place.line >= 1 && place.column >= 1 && place.length >= 0);
    before = config_errors(c), check(c, config_int(c, p, -9, 9, integers), before);
    before = config_errors(c), check(c, config_real(c, p, -9, 9, reals), before);
    before = config_errors(c), check(c, config_bool(c, p, &flag), before);
    before = config_errors(c), check(c, config_choice(c, p, "a|bc|", &index), before);
    before = config_errors(c), check(c, config_size(c, p, &number), before);
    before = config_errors(c), check(c, config_time(c, p, &number), before);
    before = config_errors(c);
    check(c, config_ints(c, p, -9, INT64_MAX, integers, 16, &n), before);
    before = config_errors(c), check(c, config_reals(c, p, reals, 16, &n), before);
    before = config_errors(c);
    bool good = config_list(c, p, &items, &n);
    check(c, good, before);
    for (size_t i = 0; good && i < n; i++)
        require(items[i].offset + strlen(items[i].text) <= length);
    config_list_free(items, n);
}

static void read_all(struct config *c)
{
    static const char *const names[] = {"type", "inputs", "file"};
    for (size_t i = 0; i < config_sections(c); i++) {
        struct config_section *s = config_section(c, i);
        config_unknown(c, s, names, 3);
        for (size_t k = 0; k < s->n_pairs; k++) {
            require(config_get(s, s->pairs[k].key) != NULL);
            read_value(c, &s->pairs[k]);
        }
    }
}

/* The files stay from input to input; only what they hold changes. */
static const char *write_files(const uint8_t *data, size_t size)
{
    static char folder[] = "/tmp/strata-fuzz-XXXXXX", net[64];
    static const char *const names[] = {"net.ini", "a.inc", "b.inc"};
    if (!net[0]) {
        require(mkdtemp(folder) != NULL);
        snprintf(net, sizeof net, "%s/net.ini", folder);
    }
    for (int i = 0; i < 3; i++) {
        char path[64];
        const uint8_t *next = size ? memchr(data, '@', size) : NULL;
        size_t n = next && i < 2 ? (size_t)(next - data) : size;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        FILE *f = fopen(path, "w");
        require(f != NULL);
        fwrite(data, 1, n, f);
        fclose(f);
        data += n + (n < size);
        size -= n + (n < size);
    }
    return net;
}

static int open_config(struct config **c, const uint8_t *data, size_t size,
                       const strata_network_options *options, strata_error *err)
{
    return size && *data == '@'
               ? config_load(c, write_files(data + 1, size - 1), options, err)
               : config_parse(c, (const char *)data, size, "fuzz.ini", options, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    strata_error err = {0};
    struct config *c;
    char *set[OPTIONS_MAX] = {0}, *define[OPTIONS_MAX] = {0};
    strata_network_options options = {.struct_size = sizeof options,
                                      .set = (const char *const *)set,
                                      .define = (const char *const *)define};
    options.n_set = take_options(&data, &size, '+', set);
    options.n_define = take_options(&data, &size, '-', define);
    require(open_config(&c, data, size, &options, &err) == STRATA_OK);
    config_profile(c);
    read_all(c);
    size_t errors = config_errors(c);
    int status = config_finish(c, &err);
    require(status == (errors ? STRATA_EPARSE : STRATA_OK) && status == err.status);
    require(!errors == !strstr(err.message, ": error: "));
    require(strlen(err.message) == err.length);
    config_free(c);
    for (size_t i = 0; i < OPTIONS_MAX; i++) {
        free(set[i]);
        free(define[i]);
    }
    return 0;
}
