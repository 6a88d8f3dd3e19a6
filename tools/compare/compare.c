/* SPDX-License-Identifier: Apache-2.0
 *
 * strata compare: the same inputs through two engines, and every tensor held against
 * its twin.
 */
#include "tools/compare/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/run/run.h"
#include "tools/compare/variant.h"

enum {
    OPTION_DEVICES = TOOL_OWN,
    OPTION_PRECISIONS,
    OPTION_FORMATS,
    OPTION_IMPLS,
    OPTION_MATHS,
    OPTION_WITH,
    OPTION_NO_FUSION,
    OPTION_ISOLATE,
    OPTION_TOLERANCE,
    OPTION_FAILED,
    OPTION_INPUT,
    OPTION_DIM,
    OPTION_DUMP,
    OPTION_FOLDER,
};

static const struct option options[] = {
    {"devices", required_argument, NULL, OPTION_DEVICES},
    {"precisions", required_argument, NULL, OPTION_PRECISIONS},
    {"formats", required_argument, NULL, OPTION_FORMATS},
    {"impls", required_argument, NULL, OPTION_IMPLS},
    {"maths", required_argument, NULL, OPTION_MATHS},
    {"with", required_argument, NULL, OPTION_WITH},
    {"no-fusion", no_argument, NULL, OPTION_NO_FUSION},
    {"isolate", no_argument, NULL, OPTION_ISOLATE},
    {"tolerance", required_argument, NULL, OPTION_TOLERANCE},
    {"failed", no_argument, NULL, OPTION_FAILED},
    {"input", required_argument, NULL, OPTION_INPUT},
    {"dim", required_argument, NULL, OPTION_DIM},
    {"dump", required_argument, NULL, OPTION_DUMP},
    {"folder", required_argument, NULL, OPTION_FOLDER},
    {0},
};

/* "A,B": what the sides differ in. */
struct pair {
    char *text; /* of both */
    const char *sides[2];
};

enum { DEVICES, PRECISIONS, FORMATS, IMPLS, MATHS, PAIRS };
static const struct {
    const char *option, *key; /* of --set; NULL: handled apart */
} pair_kinds[PAIRS] = {
    [DEVICES] = {"--devices", NULL},
    [PRECISIONS] = {"--precisions", "build.precision"},
    [FORMATS] = {"--formats", "build.formats"},
    [IMPLS] = {"--impls", NULL},
    [MATHS] = {"--maths", "build.math"},
};

struct arguments {
    struct tool_options common;
    struct pair pairs[PAIRS];
    struct compare_how how;
    bool no_fusion, isolate;
    const char **with, **dumps;
    size_t n_with, n_dumps, with_capacity, dumps_capacity;
    char **dump_paths; /* of each dump, for A and B */
    const char *folder;
};

/* ---- options ------------------------------------------------------------------------
 */

static bool read_pair(struct pair *p, const char *name)
{
    free(p->text);
    p->text = duplicate(optarg, NULL);
    if (!p->text) {
        tool_error("out of memory for an option");
        return false;
    }
    char *comma = strchr(p->text, ',');
    if (!comma || comma == p->text || !comma[1] || strchr(comma + 1, ',')) {
        tool_error("%s '%s': two are needed, as A,B", name, optarg);
        return false;
    }
    *comma = '\0';
    p->sides[0] = p->text;
    p->sides[1] = comma + 1;
    return true;
}

static bool push(const char ***list, size_t *capacity, size_t *n)
{
    if (grow(list, capacity, *n, sizeof **list, NULL) != STRATA_OK) {
        tool_error("out of memory for an option");
        return false;
    }
    (*list)[(*n)++] = optarg;
    return true;
}

static bool read_tolerance(double *out)
{
    char *end;
    *out = strtod(optarg, &end);
    if (end != optarg && !*end && *out >= 0 && isfinite(*out))
        return true;
    tool_error("--tolerance '%s': a number, as 1e-3, is needed", optarg);
    return false;
}

static bool own_option(struct arguments *a, int option)
{
    switch (option) {
    case OPTION_WITH:
        return push(&a->with, &a->with_capacity, &a->n_with);
    case OPTION_INPUT:
        return tool_input(&a->common, optarg);
    case OPTION_DIM:
        return tool_dim(&a->common, optarg);
    case OPTION_DUMP:
        return push(&a->dumps, &a->dumps_capacity, &a->n_dumps);
    case OPTION_FOLDER:
        a->folder = optarg;
        return true;
    case OPTION_NO_FUSION:
        a->no_fusion = true;
        return true;
    case OPTION_ISOLATE:
        a->isolate = true;
        return true;
    case OPTION_FAILED:
        a->how.failed_only = true;
        return true;
    case OPTION_TOLERANCE:
        return read_tolerance(&a->how.tolerance);
    }
    return read_pair(&a->pairs[option - OPTION_DEVICES],
                     pair_kinds[option - OPTION_DEVICES].option);
}

static bool differs(const struct arguments *a)
{
    bool any = a->n_with > 0;
    for (int k = 0; k < PAIRS; k++)
        any |= a->pairs[k].text != NULL;
    return any;
}

/* ---- sides --------------------------------------------------------------------------
 */

static bool has_impl(const struct network_layer *l, const char *name)
{
    for (size_t i = 0; i < l->type->n_impls; i++)
        if (strcmp(l->type->impls[i].impl.name, name) == 0)
            return true;
    return false;
}

/* Pin every layer that has an impl of the name; others stay free. */
static int pin_impls(struct tool_options *o, const char *path, const char *name,
                     strata_error *err)
{
    struct tool_session s = {0};
    size_t pinned = 0;
    int status = tool_open_network(&s, o, path, err);
    for (size_t i = 0; status == STRATA_OK && i < s.network->n_layers; i++) {
        const struct network_layer *l = &s.network->layers[i];
        if (!has_impl(l, name))
            continue;
        status = variant_set(o, err, "layer %s.impl=%s", l->name, name);
        pinned++;
    }
    if (status == STRATA_OK && pinned == 0)
        status = error_set(err, STRATA_EINVAL,
                           "--impls: no layer of %s has an impl '%s'; `strata describe "
                           "LAYER` lists them",
                           path, name);
    tool_close(&s);
    return status;
}

static void add_label(struct compare_side *s, const char *text)
{
    const size_t used = strlen(s->label);
    snprintf(s->label + used, sizeof s->label - used, "%s%s", used ? " " : "", text);
}

static int side_options(struct tool_options *o, struct compare_side *s,
                        const struct arguments *a, int side, const char *path,
                        strata_error *err)
{
    int status = variant_open(o, &a->common, err);
    if (a->pairs[DEVICES].text)
        o->device = a->pairs[DEVICES].sides[side];
    for (int k = 0; k < PAIRS && status == STRATA_OK; k++) {
        if (!a->pairs[k].text)
            continue;
        add_label(s, a->pairs[k].sides[side]);
        if (pair_kinds[k].key)
            status =
                variant_set(o, err, "%s=%s", pair_kinds[k].key, a->pairs[k].sides[side]);
    }
    if (status == STRATA_OK && a->no_fusion)
        status = variant_set(o, err, "build.fusion=no");
    for (size_t i = 0; i < a->n_with && side == 1 && status == STRATA_OK; i++) {
        add_label(s, a->with[i]);
        status = variant_set(o, err, "%s", a->with[i]);
    }
    if (status == STRATA_OK && a->pairs[IMPLS].text)
        status = pin_impls(o, path, a->pairs[IMPLS].sides[side], err);
    return status;
}

/* What a dump needs, as far as it is known before a plan. */
static int look(const void *of, const strata_network *net, strata_error *err)
{
    const struct arguments *a = of;
    for (size_t i = 0; i < a->n_dumps; i++) {
        bool found = false;
        for (size_t k = 0; k < net->n_tensors && !found; k++)
            found = strcmp(net->tensors[k].name, a->dumps[i]) == 0 &&
                    net->tensors[k].producer >= 0;
        if (!found)
            return error_set(err, STRATA_ENOTFOUND,
                             "--dump: no layer of %s makes a tensor '%s'; `strata "
                             "explain %s --tensors` lists them",
                             net->path, a->dumps[i], net->path);
    }
    return run_look(&a->common, net, err);
}

static int prepare_side(struct compare_side *s, struct tool_options *o,
                        const struct arguments *a, int side, const char *path, bool named,
                        strata_error *err)
{
    if (named)
        add_label(s, path);
    int status = side_options(o, s, a, side, path, err);
    o->look = look;
    o->look_of = a;
    return status == STRATA_OK ? tool_prepare(&s->session, o, path, err) : status;
}

static int run_side(struct compare_side sides[2], const struct tool_options *o,
                    const struct arguments *a, int side, strata_error *err)
{
    struct compare_side *s = &sides[side];
    int status = tool_plan(&s->session, o, err);
    if (status == STRATA_OK)
        status =
            strata_context_create(&s->context, s->session.engine, s->session.handle, err);
    if (status == STRATA_OK)
        status = run_set_sizes(s->context, &a->common, err);
    if (status == STRATA_OK)
        status = run_read_inputs(s->context, s->session.engine, &a->common, err);
    if (status == STRATA_OK)
        status = compare_collect(s, a->isolate && side == 1 ? sides : NULL, err);
    if (!s->label[0])
        add_label(s, "as it is");
    return status;
}

/* What is wrong with the second one is told before the first one is planned and run. */
static int open_sides(struct compare_side sides[2], const struct arguments *a,
                      char **paths, int n, strata_error *err)
{
    struct tool_options o[2] = {{.format = 0}, {.format = 0}};
    int status = STRATA_OK;
    for (int i = 0; i < 2 && status == STRATA_OK; i++)
        status = prepare_side(&sides[i], &o[i], a, i, paths[n == 2 ? i : 0], n == 2, err);
    for (int i = 0; i < 2 && status == STRATA_OK; i++)
        status = run_side(sides, &o[i], a, i, err);
    for (int i = 0; i < 2; i++)
        variant_close(&o[i]);
    return status;
}

/* ---- dumps --------------------------------------------------------------------------
 */

/* FOLDER/TENSOR.a.npy; a '/' of the name becomes '_'. They are files that the command
 * writes, which are looked at with the networks. */
static int name_dumps(struct arguments *a, strata_error *err)
{
    a->dump_paths = zalloc(2 * a->n_dumps, sizeof *a->dump_paths, "paths", err);
    if (!a->dump_paths)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < 2 * a->n_dumps; i++) {
        char *path = text_print("%s/%s.%c.npy", a->folder, a->dumps[i / 2], "ab"[i % 2]);
        a->dump_paths[i] = path;
        if (!path || !tool_output(&a->common, path))
            return error_no_memory(err, 0, "a path");
        for (char *p = path + strlen(a->folder) + 1; *p; p++)
            if (*p == '/')
                *p = '_';
    }
    return STRATA_OK;
}

static int dump_tensor(const struct compare_side *s, const char *name, const char *path,
                       strata_error *err)
{
    const struct compare_tensor *t = compare_find(s, name);
    return t ? values_save(&t->values, path, err)
             : error_set(err, STRATA_ENOTFOUND,
                         "--dump: %s makes no tensor '%s' (it may be fused: try "
                         "--no-fusion)",
                         s->label, name);
}

static int dump(const struct arguments *a, const struct compare_side sides[2],
                strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < 2 * a->n_dumps && status == STRATA_OK; i++)
        status = dump_tensor(&sides[i % 2], a->dumps[i / 2], a->dump_paths[i], err);
    return status;
}

/* ---- the command --------------------------------------------------------------------
 */

static int compare(struct arguments *a, char **paths, int n)
{
    struct compare_side sides[2] = {{.n = 0}, {.n = 0}};
    strata_error err;
    error_clear(&err);
    int status = name_dumps(a, &err);
    if (status == STRATA_OK)
        status = open_sides(sides, a, paths, n, &err);
    if (status == STRATA_OK)
        status = dump(a, sides, &err);
    const int code = status == STRATA_OK ? compare_print(&sides[0], &sides[1], &a->how)
                                         : tool_fail(&err);
    compare_side_free(&sides[0]);
    compare_side_free(&sides[1]);
    return code;
}

static int run_compare(int argc, char **argv)
{
    struct arguments a = {.how = {.tolerance = -1}, .folder = "."};
    int option, code = EXIT_OK;
    while ((option = tool_next_option(&a.common, argc, argv, options)) != -1)
        if (option == '?' || !own_option(&a, option)) {
            code = EXIT_USAGE;
            goto done;
        }
    a.how.format = a.common.format;
    const int n = argc - optind;
    if (a.common.help)
        code = tool_help(&tool_compare);
    else if (n < 1 || n > 2)
        code = tool_usage(&tool_compare, "one network file is needed, or two");
    else if (n == 1 && !differs(&a))
        code = tool_usage(&tool_compare, "say what differs: --devices, --precisions, "
                                         "--formats, --impls, --maths or --with");
    else
        code = compare(&a, argv + optind, n);
done:
    for (int k = 0; k < PAIRS; k++)
        free(a.pairs[k].text);
    for (size_t i = 0; a.dump_paths && i < 2 * a.n_dumps; i++)
        free(a.dump_paths[i]);
    free(a.dump_paths);
    free(a.with);
    free(a.dumps);
    tool_options_free(&a.common);
    return code;
}

const struct tool_command tool_compare = {
    .name = "compare",
    .summary = "Run a network two ways and compare every tensor on the way",
    .usage = "A [B] [OPTION...]",
    .help =
        "A and B are networks or engines. With A alone, what differs is one or more of\n"
        "      --devices=A,B         host,cuda\n"
        "      --precisions=A,B      fp32,fp16; bf16\n"
        "      --formats=A,B         of intermediate tensors: fp32:nchw,fp32:nhwc\n"
        "      --impls=A,B           pin layers that have an impl of this name: any,c\n"
        "      --maths=A,B           as default,tensor_op or default,tf32\n"
        "      --with=SECTION.KEY=VALUE  for B alone, as --set\n\n"
        "Options:\n"
        "      --no-fusion           compare also what would be inside a fused layer\n"
        "      --isolate             B's layers read what A's made: each error is its "
        "own\n"
        "      --tolerance=T         largest difference over the tensor's largest value\n"
        "                            (default 1e-4, with FP16 2e-2, BF16 0.1, FP8 "
        "0.2 (E4M3)\n"
        "                            and 0.4 (E5M2), FP32 in math mode tf32 2e-2, one "
        "side\n"
        "                            quantised 0.2; integers and BOOL exactly)\n"
        "      --failed              list only tensors beyond it\n"
        "      --input=[NAME=]FILE   an input as in `strata run`; random by default\n"
        "      --dim=NAME=SIZE       the size of a name of [profile], as T=77\n"
        "      --dump=TENSOR         write TENSOR.a.npy and TENSOR.b.npy\n"
        "      --folder=FOLDER       where to (default: here)\n\n"
        "Tensors are taken from the run as planned, right after the layer that makes\n"
        "them. Exits with 1 if one is beyond the tolerance, and says which came first "
        "and\n"
        "which tolerance would pass; `atol that passes` is for numpy.allclose with rtol "
        "=\n"
        "the tolerance.\n",
    .examples = "  strata compare net.ini --devices host,cuda\n"
                "  strata compare net.ini --precisions fp32,fp16 --isolate --failed\n"
                "  strata compare net.ini --impls any,c -o csv\n"
                "  strata compare old.engine new.engine --input x.npy --dump conv1\n",
    .run = run_compare,
};
