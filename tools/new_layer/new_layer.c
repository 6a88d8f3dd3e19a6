/* SPDX-License-Identifier: Apache-2.0
 *
 * strata new-layer: a folder with a layer's source, a network to try it in, and three
 * ways to build it, from tools/new_layer/templates.
 */
#include "tools/new_layer/new_layer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/file.h"

enum {
    OPTION_CUDA = TOOL_OWN,
    OPTION_ATTR,
    OPTION_WEIGHT,
    OPTION_IN,
    OPTION_OUT,
    OPTION_EXTENDS,
    OPTION_NAMESPACE,
    OPTION_FORCE,
    OPTION_DIRECTORY = TOOL_SHORT + 'C',
};

static const struct option options[] = {
    {"cuda", no_argument, NULL, OPTION_CUDA},
    {"attr", required_argument, NULL, OPTION_ATTR},
    {"weight", required_argument, NULL, OPTION_WEIGHT},
    {"in", required_argument, NULL, OPTION_IN},
    {"out", required_argument, NULL, OPTION_OUT},
    {"extends", required_argument, NULL, OPTION_EXTENDS},
    {"namespace", required_argument, NULL, OPTION_NAMESPACE},
    {"directory", required_argument, NULL, OPTION_DIRECTORY},
    {"force", no_argument, NULL, OPTION_FORCE},
    {0},
};

enum { ALWAYS = 0, LAYER = 1, EXTENDS = 2, CUDA = 4 }; /* when a file is written */

/* A name that starts with '_' or '.' and is no dot file follows the layer's. */
static const struct output {
    const char *template, *name;
    bool suffix;
    int when; /* all of these */
} outputs[] = {
    {"layer.c", ".c", true, LAYER},
    {"extends.c", ".c", true, EXTENDS},
    {"layer.h", ".h", true, LAYER | CUDA},
    {"layer_cuda.cu", "_cuda.cu", true, LAYER | CUDA},
    {"extends_cuda.cu", "_cuda.cu", true, EXTENDS | CUDA},
    {"layer.ini", ".ini", true, LAYER},
    {"extends.ini", ".ini", true, EXTENDS},
    {"Makefile", "Makefile", false, ALWAYS},
    {"configure.ac", "configure.ac", false, ALWAYS},
    {"Makefile.am", "Makefile.am", false, ALWAYS},
    {"CMakeLists.txt", "CMakeLists.txt", false, ALWAYS},
    {"README.md", "README.md", false, ALWAYS},
    {"gitignore", ".gitignore", false, ALWAYS},
};

struct request {
    struct new_layer layer;
    struct tool_options common;
    const char *folder; /* NULL: named after the layer */
    bool force, ports;  /* ports: --in or --out is given */
};

/* ---- files ---------------------------------------------------------------------------
 */

static bool is_wanted(const struct output *o, const struct new_layer *l)
{
    const int kind = (l->base ? EXTENDS : LAYER) | (l->cuda ? CUDA : 0);
    return (o->when & ~kind) == 0;
}

static int output_path(char **path, const struct request *q, const struct output *o,
                       strata_error *err)
{
    const char *folder = q->folder ? q->folder : q->layer.file;
    if (asprintf(path, "%s/%s%s", folder, o->suffix ? q->layer.file : "", o->name) >= 0)
        return STRATA_OK;
    *path = NULL;
    return error_set(err, STRATA_ENOMEM, "out of memory for a path");
}

/* All that stand in the way, in one message. */
static int check_absent(const struct request *q, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < ARRAY_LENGTH(outputs) && !q->force; i++) {
        char *path;
        struct stat st;
        if (!is_wanted(&outputs[i], &q->layer))
            continue;
        if (output_path(&path, q, &outputs[i], err) != STRATA_OK)
            return STRATA_ENOMEM;
        if (lstat(path, &st) == 0) {
            if (status == STRATA_OK)
                status = error_set(err, STRATA_EINVAL, "would overwrite");
            error_append(err, " %s", path);
        }
        free(path);
    }
    if (status != STRATA_OK)
        error_append(err,
                     "; nothing is written. Use another folder (-C DIR), or --force");
    return status;
}

/* The folder and what is above it. Nobody else may write there: a plugin in a folder that
 * others can write is not loaded. */
static int make_folder(const char *path, strata_error *err)
{
    char *copy = duplicate(path, err);
    int status = copy ? STRATA_OK : STRATA_ENOMEM;
    for (char *end = copy; end && status == STRATA_OK;) {
        end = strchr(end + 1, '/');
        if (end)
            *end = '\0';
        if (mkdir(copy, 0755) == 0)
            chmod(copy, 0755);
        else if (errno != EEXIST)
            status = error_errno(err, STRATA_EIO, "cannot make the folder '%s'", copy);
        if (end)
            *end = '/';
    }
    free(copy);
    return status;
}

static int write_output(const struct request *q, const struct output *o,
                        const struct template_values *v, strata_error *err)
{
    char *path, *text = NULL;
    int status = output_path(&path, q, o, err);
    if (status == STRATA_OK)
        status = template_expand(&text, o->template, v, err);
    if (status == STRATA_OK)
        status = file_write(path, text, strlen(text), err);
    if (status == STRATA_OK)
        tool_print("wrote %s\n", path);
    free(text);
    free(path);
    return status;
}

/* What was written before something failed would stand in the way of the next try. */
static void take_back(const struct request *q, size_t n)
{
    for (size_t i = 0; i < n && !q->force; i++) {
        char *path;
        if (is_wanted(&outputs[i], &q->layer) &&
            output_path(&path, q, &outputs[i], NULL) == STRATA_OK) {
            unlink(path);
            free(path);
        }
    }
}

static int write_all(const struct request *q, strata_error *err)
{
    const char *folder = q->folder ? q->folder : q->layer.file;
    struct template_values v = {0};
    int status = new_layer_values(&v, &q->layer, err);
    if (status == STRATA_OK)
        status = check_absent(q, err);
    if (status == STRATA_OK)
        status = make_folder(folder, err);
    size_t n = 0;
    for (; n < ARRAY_LENGTH(outputs) && status == STRATA_OK; n++)
        if (is_wanted(&outputs[n], &q->layer))
            status = write_output(q, &outputs[n], &v, err);
    if (status != STRATA_OK && n > 0)
        take_back(q, n - 1);
    if (status == STRATA_OK)
        tool_print(
            strcmp(template_get(&v, "frame"), "1") == 0
                ? "next: cd %s, make, make run; then write accept and run, make check\n"
                : "next: cd %s, make, make check, make run\n",
            folder);
    template_free(&v);
    return status;
}

/* ---- options -------------------------------------------------------------------------
 */

static int take_count(int *out, const char *option, const char *text, strata_error *err)
{
    char *end;
    const long value = strtol(text, &end, 10);
    if (end == text || *end || value < 1 || value > NEW_LAYER_PORTS)
        return error_set(err, STRATA_EINVAL, "%s '%s': a number from 1 to %d is needed",
                         option, text, NEW_LAYER_PORTS);
    *out = (int)value;
    return STRATA_OK;
}

static int take_option(struct request *q, int option, strata_error *err)
{
    struct new_layer *l = &q->layer;
    switch (option) {
    case OPTION_CUDA:
        l->cuda = true;
        return STRATA_OK;
    case OPTION_ATTR:
        return new_layer_attr(l, optarg, err);
    case OPTION_WEIGHT:
        return new_layer_weight(l, optarg, err);
    case OPTION_IN:
        q->ports = true;
        return take_count(&l->n_in, "--in", optarg, err);
    case OPTION_OUT:
        q->ports = true;
        return take_count(&l->n_out, "--out", optarg, err);
    case OPTION_NAMESPACE:
        return new_layer_namespace(l, optarg, err);
    case OPTION_EXTENDS:
        l->extends = optarg;
        return STRATA_OK;
    case OPTION_DIRECTORY:
        q->folder = optarg;
        return STRATA_OK;
    default:
        q->force = true;
        return STRATA_OK;
    }
}

/* The layer to extend has its own attributes, weights and ports. */
static int open_base(struct request *q, struct tool_session *s, strata_error *err)
{
    struct new_layer *l = &q->layer;
    if (!l->extends)
        return STRATA_OK;
    if (l->n_attrs || l->n_weights || q->ports)
        return error_set(
            err, STRATA_EINVAL,
            "--extends %s adds an impl to a layer that has its attributes, "
            "weights and ports already; leave out --attr, --weight, --in and "
            "--out",
            l->extends);
    int status = tool_open_registry(s, &q->common, err);
    return status == STRATA_OK ? registry_find(s->registry, l->extends, &l->base, err)
                               : status;
}

static int run_new_layer(int argc, char **argv)
{
    struct request q = {.layer = {.ns = "org.example", .n_in = 1, .n_out = 1}};
    struct tool_session s = {0};
    strata_error err;
    int option, status = STRATA_OK, code = EXIT_OK;
    error_clear(&err);
    while (status == STRATA_OK &&
           (option = tool_next_option(&q.common, argc, argv, options)) != -1) {
        if (option == '?') {
            code = EXIT_USAGE;
            goto done;
        }
        status = take_option(&q, option, &err);
    }
    if (status == STRATA_OK && q.common.help) {
        code = tool_help(&tool_new_layer);
        goto done;
    }
    if (status == STRATA_OK && argc - optind != 1) {
        code = tool_usage(&tool_new_layer, "one layer name is needed");
        goto done;
    }
    if (status == STRATA_OK) {
        code = tool_check_unused(&tool_new_layer, &q.common, USES_PLUGINS);
        if (code != EXIT_OK)
            goto done;
    }
    if (status == STRATA_OK)
        status = new_layer_name(&q.layer, argv[optind], &err);
    if (status == STRATA_OK)
        status = open_base(&q, &s, &err);
    if (status == STRATA_OK)
        status = write_all(&q, &err);
    if (status != STRATA_OK)
        code = tool_fail(&err);
done:
    new_layer_free(&q.layer);
    tool_close(&s);
    tool_options_free(&q.common);
    return code;
}

const struct tool_command tool_new_layer = {
    .name = "new-layer",
    .summary = "Write a folder for a layer of your own, ready to build",
    .usage = "NAME [OPTION...]",
    .help =
        "Writes a C source with tables, formula and reference, a network to try it in, "
        "and\n"
        "a Makefile, Autotools and CMake files. It builds, runs and passes `strata "
        "check`\n"
        "as it is. With --extends that holds for core::Convolution; for other layers it\n"
        "is a frame: it builds and runs, takes no node until you write accept and run,\n"
        "and `strata check` says so.\n\n"
        "      --attr=NAME:TYPE[=DEFAULT][:MIN..MAX]\n"
        "                           an attribute (repeatable); TYPE is int, real, bool,\n"
        "                           string, ints, reals, or enum: mode:enum=a:a|b\n"
        "      --weight=NAME[:optional]  a weight, one value a channel (repeatable)\n"
        "      --in=N, --out=M      inputs and outputs; default 1\n"
        "      --cuda               a CUDA impl too, in four formats\n"
        "      --extends=LAYER      instead: an impl for a built-in layer\n"
        "      --namespace=NS       default org.example\n"
        "  -C, --directory=DIR      the folder; default the name in small letters\n"
        "      --force              overwrite files\n",
    .examples = "  strata new-layer LeakyReLU --attr slope:real=0.01:0..1\n"
                "  strata new-layer ChannelScale --weight factor --weight bias:optional\n"
                "  strata new-layer FastConvolution --extends core::Convolution\n",
    .run = run_new_layer,
};
