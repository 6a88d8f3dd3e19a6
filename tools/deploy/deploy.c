/* SPDX-License-Identifier: Apache-2.0
 *
 * strata deploy: engine files to a model of a Triton repository. Files are checked as a
 * load would check them; those whose device is here run once.
 */
#include "tools/deploy/deploy.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

enum {
    OPTION_OUTPUT = TOOL_SHORT + 'o',
    OPTION_NAME = TOOL_OWN,
    OPTION_VERSION,
    OPTION_FORCE
};

static const struct option options[] = {
    {"output", required_argument, NULL, OPTION_OUTPUT},
    {"name", required_argument, NULL, OPTION_NAME},
    {"version", required_argument, NULL, OPTION_VERSION},
    {"force", no_argument, NULL, OPTION_FORCE},
    {0},
};

/* ---- engines ----------------------------------------------------------------------- */

static int read_device(struct deployed *e, strata_error *err)
{
    json_t *json;
    const char *kind, *name;
    json_int_t sm;
    int status = engine_section_json(&json, &e->file, SECTION_DEVICE, err);
    if (status != STRATA_OK)
        return status;
    if (json_unpack(json, "{s:s, s:s, s:I}", "kind", &kind, "name", &name, "sm", &sm) !=
        0)
        status = error_set(err, STRATA_EPARSE,
                           "%s: section '" SECTION_DEVICE "' tells no device", e->path);
    if (status == STRATA_OK) {
        snprintf(e->kind, sizeof e->kind, "%s", kind);
        snprintf(e->device, sizeof e->device, "%s", name);
        e->sm = sm > 0 && sm < 10000 ? (int)sm : 0;
    }
    json_decref(json);
    return status;
}

static int open_file(struct deployed *e, strata_registry *registry, strata_error *err)
{
    int status = tool_file_status(engine_file_open(&e->file, e->path, err), err);
    if (status == STRATA_OK)
        status = read_device(e, err);
    if (status == STRATA_OK)
        status = engine_file_network(&e->network, &e->file, e->path, registry, err);
    return status;
}

static int run_once(strata_handle *h, const strata_engine *engine, strata_error *err)
{
    strata_context *c = NULL;
    int status = strata_context_create(&c, engine, h, err);
    if (status == STRATA_OK)
        status = strata_context_prepare(c, err);
    strata_context_destroy(c);
    return status;
}

/* A device that is not here, or of another capability, is no fault of the file. */
static int check_engine(struct deployed *e, strata_registry *registry, strata_error *err)
{
    strata_handle *h = NULL;
    strata_engine *engine = NULL;
    e->checked = "read; no such device here to run it on";
    if (strata_create(&h, e->kind, NULL) != STRATA_OK)
        return STRATA_OK;
    int status = strata_engine_load(&engine, h, registry, e->path, err);
    if (status == STRATA_OK)
        status = run_once(h, engine, err);
    if (status == STRATA_OK)
        e->checked = "run once";
    else if (status == STRATA_EUNSUPPORTED)
        status = STRATA_OK;
    strata_engine_destroy(engine);
    strata_destroy(h);
    return status;
}

static void name_file(struct deployed *e, size_t n)
{
    if (e->sm > 0)
        snprintf(e->name, sizeof e->name, "cc%d.engine", e->sm);
    else
        snprintf(e->name, sizeof e->name, n > 1 ? "host.engine" : "model.engine");
}

/* ---- what they have in common ------------------------------------------------------ */

static int refuse_pair(const struct deployed *a, const struct deployed *b,
                       const char *what, strata_error *err)
{
    return error_set(err, STRATA_EINVAL, "%s and %s %s", a->path, b->path, what);
}

static bool same_tensor(const strata_network *a, const strata_network *b, int x, int y)
{
    const struct network_tensor *s = &a->tensors[x], *t = &b->tensors[y];
    return !strcmp(s->name, t->name) && s->rank == t->rank &&
           !memcmp(s->dims, t->dims, (size_t)s->rank * sizeof *s->dims);
}

static bool same_bindings(const strata_network *a, const strata_network *b)
{
    bool same = a->n_inputs == b->n_inputs && a->n_outputs == b->n_outputs;
    for (size_t i = 0; same && i < a->n_inputs; i++)
        same = same_tensor(a, b, a->inputs[i].tensor, b->inputs[i].tensor) &&
               a->inputs[i].format.dtype == b->inputs[i].format.dtype;
    for (size_t i = 0; same && i < a->n_outputs; i++)
        same = same_tensor(a, b, a->outputs[i].tensor, b->outputs[i].tensor) &&
               a->outputs[i].format.dtype == b->outputs[i].format.dtype;
    return same;
}

static int compare_engines(const struct deployment *d, strata_error *err)
{
    for (size_t i = 0; i < d->n; i++)
        for (size_t k = 0; k < i; k++) {
            const struct deployed *a = &d->engines[k], *b = &d->engines[i];
            if (!strcmp(a->kind, b->kind) && a->sm == b->sm)
                return refuse_pair(a, b, "are for the same kind of device; give one",
                                   err);
            if (!same_bindings(a->network, b->network))
                return refuse_pair(a, b,
                                   "differ in their inputs or outputs; build them "
                                   "of one network",
                                   err);
        }
    return STRATA_OK;
}

/* Whether every input and output of the network begins with so many rows. */
static bool all_have_rows(const strata_network *net, int64_t rows)
{
    bool all = true;
    for (size_t i = 0; i < net->n_inputs - net->n_states; i++) {
        const struct network_tensor *t = &net->tensors[net->inputs[i].tensor];
        all = all && t->rank > 0 && t->dims[0] == rows;
    }
    for (size_t i = 0; i < net->n_outputs - net->n_states; i++) {
        const struct network_tensor *t = &net->tensors[net->outputs[i].tensor];
        all = all && t->rank > 0 && t->dims[0] == rows;
    }
    return all;
}

/* Rows that run apart, as the backend finds them. */
static void find_batches(struct deployment *d)
{
    const strata_network *net = d->engines->network;
    strata_network *one = NULL;
    int64_t batch;
    if (network_batch(net, &batch, NULL) != STRATA_OK || !all_have_rows(net, batch))
        return;
    if (batch > 1 && net->n_states == 0 &&
        (network_rebatch(&one, net, 1, NULL) != STRATA_OK || !all_have_rows(one, 1)))
        batch = 0;
    strata_network_destroy(one);
    d->batch = batch;
    if (net->batch_symbol < 0) {
        d->batches[d->n_batches++] = batch;
        return;
    }
    const struct network_symbol *s = &net->symbols[net->batch_symbol];
    for (size_t i = 0; i < s->n_sizes; i++)
        d->batches[d->n_batches++] = s->sizes[i];
}

/* ---- the name ---------------------------------------------------------------------- */

static int check_name(const char *name, strata_error *err)
{
    bool good = *name && *name != '.';
    for (const char *c = name; *c; c++)
        good = good && (isalnum((unsigned char)*c) || strchr("._-", *c));
    return good ? STRATA_OK
                : error_set(err, STRATA_EINVAL,
                            "'%s' is no name of a model: letters, digits, '.', '-' and "
                            "'_', no '.' first; give one by --name",
                            name);
}

static int name_model(struct deployment *d, strata_error *err)
{
    const strata_network *net = d->engines->network;
    if (!d->name) {
        snprintf(d->own_name, sizeof d->own_name, "%s", net->name ? net->name : "");
        d->name = d->own_name;
    }
    return check_name(d->name, err);
}

/* ---- the command ------------------------------------------------------------------- */

static void print_result(const struct deployment *d, int format)
{
    static const char *const columns[] = {"file", "device", "bytes", "checked"};
    struct table t;
    if (log_level() <= STRATA_LOG_ERROR)
        return;
    table_open(&t, columns, ARRAY_LENGTH(columns), 1u << 2);
    for (size_t i = 0; i < d->n; i++) {
        const struct deployed *e = &d->engines[i];
        table_cell(&t, "%s/%" PRId64 "/%s", d->name, d->version, e->name);
        table_cell(&t, "%s", e->device);
        table_cell(&t, "%" PRIu64, e->file.info.size);
        table_cell(&t, "%s", e->checked);
    }
    table_print(&t, format, stdout);
    table_close(&t);
    if (d->keeps_config && format == TABLE_TEXT)
        tool_print("\n%s/%s/config.pbtxt was there and is left; --force writes it anew\n",
                   d->repository, d->name);
    if (d->lacking && *d->lacking && format == TABLE_TEXT)
        tool_print("It has not what these engines would have:\n%s", d->lacking);
}

static int deploy(struct deployment *d, const struct tool_options *o, bool force)
{
    struct tool_session s = {0};
    strata_error err;
    error_clear(&err);
    int status = tool_open_registry(&s, o, &err);
    for (size_t i = 0; i < d->n && status == STRATA_OK; i++)
        status = open_file(&d->engines[i], s.registry, &err);
    for (size_t i = 0; i < d->n && status == STRATA_OK; i++) {
        name_file(&d->engines[i], d->n);
        status = check_engine(&d->engines[i], s.registry, &err);
    }
    if (status == STRATA_OK)
        status = compare_engines(d, &err);
    if (status == STRATA_OK)
        status = name_model(d, &err);
    if (status == STRATA_OK) {
        find_batches(d);
        status = deploy_write(d, force, &err);
    }
    if (status == STRATA_OK)
        print_result(d, o->format);
    for (size_t i = 0; i < d->n; i++) {
        strata_network_destroy(d->engines[i].network);
        engine_file_close(&d->engines[i].file);
    }
    free(d->lacking);
    tool_close(&s);
    return status == STRATA_OK ? EXIT_OK : tool_fail(&err);
}

static int deploy_files(struct deployment *d, const struct tool_options *o, char **paths,
                        size_t n, bool force)
{
    int code = tool_check_unused(&tool_deploy, o, USES_PLUGINS | USES_FORMAT);
    if (code != EXIT_OK)
        return code;
    d->engines = zalloc(n, sizeof *d->engines, "engines", NULL);
    d->n = n;
    if (!d->engines)
        return tool_error("out of memory");
    for (size_t i = 0; i < n; i++)
        d->engines[i].path = paths[i];
    code = deploy(d, o, force);
    free(d->engines);
    return code;
}

static int run_deploy(int argc, char **argv)
{
    struct tool_options o = {0};
    struct deployment d = {0};
    bool force = false;
    int option, code = EXIT_USAGE;
    while ((option = tool_next_option(&o, argc, argv, options)) != -1) {
        if (option == '?' ||
            (option == OPTION_VERSION &&
             !tool_number(&d.version, optarg, 1, INT32_MAX, "--version")))
            goto done;
        if (option == OPTION_OUTPUT)
            d.repository = optarg;
        else if (option == OPTION_NAME)
            d.name = optarg;
        force = force || option == OPTION_FORCE;
    }
    if (o.help)
        code = tool_help(&tool_deploy);
    else if (argc == optind)
        code = tool_usage(&tool_deploy, "an engine file is needed");
    else if (!d.repository)
        code = tool_usage(&tool_deploy, "--output=REPOSITORY is needed");
    else if ((code = tool_check_output(&tool_deploy, d.repository)) == EXIT_OK)
        code = deploy_files(&d, &o, argv + optind, (size_t)(argc - optind), force);
done:
    tool_options_free(&o);
    return code;
}

const struct tool_command tool_deploy = {
    .name = "deploy",
    .summary = "Write engine files as a model of a Triton repository",
    .usage = "NET.engine... -o REPOSITORY [OPTION...]",
    .help =
        "Makes REPOSITORY/NAME/config.pbtxt and REPOSITORY/NAME/VERSION/ with the\n"
        "engines, one for each kind of device: the host, and compute capabilities of\n"
        "GPUs. Each server takes the one for its device. Files are checked, and run "
        "once\n"
        "where their device is here. A version appears whole or not at all, so that\n"
        "servers may watch the folder; one that is there is never changed, and neither\n"
        "is a config.\n\n"
        "Options:\n"
        "  -o, --output=REPOSITORY  the folder of all models; needed\n"
        "      --name=NAME       the model's (default: the network's name)\n"
        "      --version=N       (default: the next)\n"
        "      --force           write the config anew, too\n",
    .examples = "  strata deploy net.engine -o models\n"
                "  strata deploy host.engine h200.engine -o models --name=resnet50\n"
                "  strata deploy net.engine -o models --name=resnet50 --version=3\n",
    .run = run_deploy,
};
