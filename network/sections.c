/* SPDX-License-Identifier: Apache-2.0
 *
 * The sections around the graph: network, build, profile, runtime, plugins; the others
 * have files of their own.
 */
#include "network/private.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "registry/math/mode.h"
#include "core/text.h"
#include "io/file.h"

#define LABELS_MAX_BYTES (16u << 20)

/* ---- [network] ---- */

/* What an INI value cannot hold, a file's name may: an engine writes the name as one. */
static void make_writable(char *name)
{
    for (size_t left = strlen(name), size; left > 0; left -= size, name += size) {
        size = text_character_size((const unsigned char *)name, left);
        if (size == 0 || (unsigned char)*name < 0x20 || strchr("\";\x7f", *name)) {
            *name = '_';
            size = 1;
        }
    }
}

/* "squeezenet" for "models/squeezenet.ini". */
static char *default_name(const char *path, strata_error *err)
{
    const char *slash = strrchr(path, '/');
    char *name = duplicate(slash ? slash + 1 : path, err);
    char *dot = name ? strrchr(name, '.') : NULL;
    if (dot && dot != name && strcmp(dot, ".ini") == 0)
        *dot = '\0';
    if (name)
        make_writable(name);
    return name;
}

/* A line of the labels file, or NULL with ENOMEM or EPARSE in err. */
static char *label_copy(const char *text, size_t n, const char *path, size_t line,
                        strata_error *err)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) {
            error_set(err, STRATA_EPARSE, "%s:%zu: control character 0x%02x in a label",
                      path, line, (unsigned)(unsigned char)text[i]);
            return NULL;
        }
    char *copy = zalloc(n + 1, 1, "a label", err);
    if (copy)
        memcpy(copy, text, n);
    return copy;
}

/* Class names, one a line. */
static int parse_labels(strata_network *net, const struct file_bytes *bytes,
                        const char *path, strata_error *err)
{
    const char *text = bytes->data;
    size_t capacity = 0;
    int status = STRATA_OK;
    for (size_t at = 0; at < bytes->size;) {
        const char *end = memchr(text + at, '\n', bytes->size - at);
        size_t n = end ? (size_t)(end - text) - at : bytes->size - at;
        size_t next = at + n + 1;
        if (n && text[at + n - 1] == '\r')
            n--;
        status = grow(&net->labels, &capacity, net->n_labels, sizeof(char *), err);
        if (status != STRATA_OK)
            break;
        char *label = label_copy(text + at, n, path, net->n_labels + 1, err);
        if (!label)
            return STRATA_EPARSE;
        net->labels[net->n_labels++] = label;
        at = next;
    }
    return status;
}

/* Labels that came with the network's text. */
static void take_labels(struct loader *l, const struct config_pair *p)
{
    strata_error why = {0};
    const struct file_bytes bytes = {(void *)l->memory->labels, l->memory->labels_size};
    if (!bytes.data || strcmp(p->value, NETWORK_MEMORY_LABELS) != 0)
        config_error(l->c, p->value_place, "a network in memory names no files");
    else if (parse_labels(l->net, &bytes, NETWORK_MEMORY_LABELS, &why) != STRATA_OK)
        config_failed(l->c, p->value_place, &why);
}

static int load_labels(struct loader *l, const struct config_pair *p)
{
    strata_error why = {0};
    struct file_bytes bytes = {0};
    char *path = NULL;
    if (p->invalid)
        return STRATA_OK;
    if (l->memory) {
        take_labels(l, p);
        return STRATA_OK;
    }
    char *base = file_folder(config_file(l->c, p->value_place.file), &why);
    int status =
        base ? file_read_beneath(&bytes, &path, base, p->value, 0, LABELS_MAX_BYTES, &why)
             : STRATA_ENOMEM;
    if (status == STRATA_OK)
        status = parse_labels(l->net, &bytes, path, &why);
    if (status != STRATA_OK)
        config_failed(l->c, p->value_place, &why);
    file_free(&bytes);
    free(base);
    return network_keep_path(l, path);
}

static void check_version(struct config *c, const struct config_pair *p)
{
    int64_t version;
    if (config_int(c, p, 0, INT64_MAX, &version) && version != 1)
        config_error(c, p->value_place, "format %lld of the file; this library reads 1",
                     (long long)version);
}

static int read_network(struct loader *l, struct config_section *s)
{
    static const char *const keys[] = {"format", "name", "outputs", "output_formats",
                                       "labels"};
    struct config_pair *version = config_require(l->c, s, "format");
    struct config_pair *name = config_get(s, "name");
    struct config_pair *labels = config_get(s, "labels");
    config_require(l->c, s, "outputs");
    config_get(s, "output_formats");
    if (version)
        check_version(l->c, version);
    l->net->name =
        name ? duplicate(name->value, l->err) : default_name(l->net->path, l->err);
    if (!l->net->name)
        return STRATA_ENOMEM;
    config_unknown(l->c, s, keys, ARRAY_LENGTH(keys));
    return labels ? load_labels(l, labels) : STRATA_OK;
}

/* ---- [build], [runtime] ---- */

static void read_flag(struct config *c, struct config_section *s, const char *key,
                      bool *out)
{
    const struct config_pair *p = config_get(s, key);
    if (p)
        config_bool(c, p, out);
}

enum cost_kind cost_kind_named(const char *word)
{
    return strcmp(word, "auto") == 0       ? COSTS_DEFAULT
           : strcmp(word, "analytic") == 0 ? COSTS_ANALYTIC
           : strcmp(word, "measure") == 0  ? COSTS_MEASURE
                                           : COSTS_FILE;
}

/* `costs` is a word or a cost file's path. */
static void read_costs(struct loader *l, struct config_section *s, struct cost_options *o)
{
    const struct config_pair *costs = config_get(s, "costs");
    const struct config_pair *miss = config_get(s, "costs_miss");
    const struct config_pair *budget = config_get(s, "costs_budget");
    const struct config_pair *trials = config_get(s, "trials");
    int choice;
    if (costs && !costs->invalid) {
        o->kind = cost_kind_named(costs->value);
        free(o->file);
        config_note(l->c, "costs: auto, measure, analytic, or a cost file");
        o->file = o->kind == COSTS_FILE ? network_path(l, costs, PATH_FILE) : NULL;
        config_note(l->c, NULL);
    }
    if (miss && config_choice(l->c, miss, "error|measure|analytic", &choice))
        o->miss = (enum cost_miss)choice;
    if (budget)
        config_time(l->c, budget, &o->budget);
    if (trials)
        config_time(l->c, trials, &l->net->build.trials);
}

static void read_objective(struct config *c, struct config_section *s,
                           struct build_options *b)
{
    const struct config_pair *objective = config_get(s, "objective");
    const struct config_pair *slack = config_get(s, "memory_slack");
    const struct config_pair *plans = config_get(s, "memory_plans");
    const struct config_pair *nodes = config_get(s, "plan_nodes");
    int choice;
    if (objective && config_choice(c, objective, "time|reformats|memory", &choice))
        b->objective = (enum objective)choice;
    if (slack)
        config_real(c, slack, 0, 1000, &b->memory_slack);
    if (plans)
        config_int(c, plans, 1, 10000, &b->memory_plans);
    if (nodes)
        config_int(c, nodes, 0, INT64_MAX, &b->plan_nodes);
}

static int read_build(struct loader *l, struct config_section *s)
{
    static const char *const keys[] = {
        "precision",    "formats",      "fusion",     "no_reformat",   "objective",
        "memory_slack", "memory_plans", "plan_nodes", "deterministic", "workspace",
        "math",         "costs",        "costs_miss", "costs_budget",  "nan",
        "merge",        "trials",       "quantised"};
    struct build_options *b = &l->net->build;
    const struct config_pair *precision = config_get(s, "precision");
    const struct config_pair *formats = config_get(s, "formats");
    const struct config_pair *workspace = config_get(s, "workspace");
    const struct config_pair *math = config_get(s, "math");
    const struct config_pair *nan = config_get(s, "nan");
    const struct config_pair *quantised = config_get(s, "quantised");
    int choice;
    if (precision && config_choice(l->c, precision, "fp32|fp16|any|bf16", &choice))
        b->precision = (enum precision)choice;
    if (math)
        config_choice(l->c, math, MATH_MODES, &b->math);
    if (formats)
        network_formats(l->c, formats, &b->formats);
    if (workspace)
        config_size(l->c, workspace, &b->workspace);
    read_costs(l, s, &b->costs);
    read_objective(l->c, s, b);
    read_flag(l->c, s, "fusion", &b->fusion);
    read_flag(l->c, s, "merge", &b->merge);
    read_flag(l->c, s, "no_reformat", &b->no_reformat);
    read_flag(l->c, s, "deterministic", &b->deterministic);
    if (nan && config_choice(l->c, nan, "any|propagate", &choice))
        b->nan = choice == 1;
    if (quantised && config_choice(l->c, quantised, "exact|fastest", &choice))
        b->mixed = choice == 1;
    config_unknown(l->c, s, keys, ARRAY_LENGTH(keys));
    return STRATA_OK;
}

static bool device_valid(const char *name)
{
    size_t digits;
    if (strncmp(name, "cuda:", 5) != 0)
        return strcmp(name, "auto") == 0 || strcmp(name, "host") == 0 ||
               strcmp(name, "cuda") == 0;
    digits = strspn(name + 5, "0123456789");
    return digits >= 1 && digits <= 3 && !name[5 + digits];
}

static int read_runtime(struct loader *l, struct config_section *s)
{
    static const char *const keys[] = {"device", "threads", "wait", "graph"};
    const struct config_pair *device = config_get(s, "device");
    const struct config_pair *threads = config_get(s, "threads");
    const struct config_pair *wait = config_get(s, "wait");
    int choice;
    if (threads)
        config_int(l->c, threads, 0, 4096, &l->net->runtime.threads);
    if (wait && config_choice(l->c, wait, "spin|yield|sleep", &choice))
        l->net->runtime.wait = STRATA_WAIT_SPIN + choice;
    if (device && !device->invalid && !device_valid(device->value)) {
        config_error(l->c, device->value_place,
                     "'%s' is not a device: auto, host, cuda or cuda:N", device->value);
    } else if (device) {
        free(l->net->runtime.device);
        l->net->runtime.device = duplicate(device->value, l->err);
        if (!l->net->runtime.device)
            return STRATA_ENOMEM;
    }
    read_flag(l->c, s, "graph", &l->net->runtime.graph);
    config_unknown(l->c, s, keys, ARRAY_LENGTH(keys));
    return STRATA_OK;
}

/* ---- [plugins] ---- */

static int read_plugins(struct loader *l, struct config_section *s)
{
    static const struct {
        const char *key;
        enum path_kind kind;
        int (*add)(strata_registry *r, const char *path, strata_error *err);
    } rules[] = {{"load", PATH_FILE, registry_add_file},
                 {"path", PATH_FOLDER, registry_add_folder}};
    static const char *const keys[] = {"load", "path"};
    for (size_t i = 0; i < s->n_pairs; i++) {
        struct config_pair *p = &s->pairs[i];
        strata_error why = {0};
        for (size_t k = 0; k < ARRAY_LENGTH(rules); k++) {
            if (strcmp(p->key, rules[k].key) != 0)
                continue;
            p->used = true;
            char *path = network_path(l, p, rules[k].kind);
            if (path && rules[k].add(l->registry, path, &why) != STRATA_OK)
                config_failed(l->c, p->value_place, &why);
            free(path);
        }
        if (why.status == STRATA_ENOMEM)
            return error_no_memory(l->err, 0, "a plugin");
    }
    config_unknown(l->c, s, keys, ARRAY_LENGTH(keys));
    return STRATA_OK;
}

int network_read_sections(struct loader *l)
{
    static const struct {
        const char *kind;
        int (*read)(struct loader *l, struct config_section *s);
    } kinds[] = {
        {"network", read_network}, {"plugins", read_plugins}, {"input", network_input},
        {"state", network_state},  {"build", read_build},     {"runtime", read_runtime},
        {"bench", network_bench},
    };
    struct config_place begin = {.file = 0, .line = 1, .column = 1};
    int status = network_profile(l);
    if (!config_find(l->c, "network"))
        config_error(l->c, begin, "no [network] section; it holds format and outputs");
    for (size_t i = 0; status == STRATA_OK && i < ARRAY_LENGTH(kinds); i++)
        status = network_each(l, kinds[i].kind, kinds[i].read);
    if (status != STRATA_ENOMEM)
        network_settle_profile(l);
    return status;
}
