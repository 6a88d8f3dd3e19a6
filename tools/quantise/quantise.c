/* SPDX-License-Identifier: Apache-2.0
 *
 * strata quantise: a network of floats and data to one of int8 or e4m3, and what it
 * costs.
 */
#include "tools/quantise/quantise.h"

#include <stdlib.h>
#include <string.h>

#include "calibrate/collected.h"
#include "io/file.h"
#include "planner/cost/progress.h"
#include "tools/quantise/outputs.h"
#include "io/stream.h"

/* All that a run needs, made in this order. */
struct job {
    const struct quantise_options *o;
    struct tool_session session;
    struct outputs outputs;
    bool *keep; /* of each layer: by --keep, then by the budget too */
    struct scheme scheme;
    struct data data;
    struct samples samples, some; /* all, and those that ranges are collected from */
    int64_t *labels;
    struct probe floats;
    struct ranges ranges;
    double *saturated;
    struct losses losses;
    const double **corrections;
    struct quantising quantising;
    struct answers *alone, answers;
    struct progress progress;
};

static void close_job(struct job *j)
{
    free(j->alone);
    free(j->corrections);
    losses_free(&j->losses);
    free(j->saturated);
    ranges_free(&j->ranges);
    probe_close(&j->floats);
    free(j->labels);
    data_close(&j->data);
    scheme_free(&j->scheme);
    free(j->keep);
    outputs_free(&j->outputs);
    tool_close(&j->session);
}

/* ---- what is quantised ---------------------------------------------------------------
 */

static int note_kept(struct job *j, const char *name, strata_error *err)
{
    const strata_network *net = j->session.network;
    const char *names[256];
    size_t n = 0;
    for (size_t i = 0; i < net->n_layers; i++) {
        if (strcmp(net->layers[i].name, name) == 0) {
            j->keep[i] = true;
            return STRATA_OK;
        }
        if (n < ARRAY_LENGTH(names))
            names[n++] = net->layers[i].name;
    }
    const char *near = suggest(name, names, n);
    return error_set(err, STRATA_ENOTFOUND, "--keep: no layer is called '%s'%s%s%s", name,
                     near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* Convolutions of few channels that read an input, as images: their depth does not fill
 * what multiplies bytes, and what they read would be rounded for them alone. */
static void keep_first(struct job *j)
{
    enum { FEW = 16 };
    const strata_network *net = j->session.network;
    for (size_t i = 0; i < net->n_layers; i++) {
        const struct network_layer *l = &net->layers[i];
        if (strcmp(l->type->full_name, "core::Convolution@1") == 0 &&
            net->tensors[l->inputs[0]].producer < 0 &&
            net->tensors[l->inputs[0]].dims[1] < FEW)
            j->keep[i] = true;
    }
}

static const struct weight_form *form_of(const struct job *j)
{
    return j->o->weights_only ? &j->o->form : NULL;
}

static int choose_layers(struct job *j, strata_error *err)
{
    const strata_network *net = j->session.network;
    j->keep = zalloc(net->n_layers, sizeof *j->keep, "layers", err);
    int status = j->keep ? STRATA_OK : STRATA_ENOMEM;
    for (size_t i = 0; i < j->o->n_keep && status == STRATA_OK; i++)
        status = note_kept(j, j->o->keep[i], err);
    if (status == STRATA_OK && j->o->float_first)
        keep_first(j);
    if (status == STRATA_OK)
        status = scheme_make(&j->scheme, net, j->o->to, j->keep, form_of(j), err);
    if (status == STRATA_OK && j->scheme.n_layers == 0)
        status = error_set(err, STRATA_EINVAL,
                           "%s: nothing to quantise: no %s of it has a constant operand "
                           "of floats%s",
                           net->path,
                           j->o->weights_only ? "MatrixMultiply"
                           : j->o->to != &quant_int8
                               ? "FullyConnected of matrices or MatrixMultiply"
                               : "Convolution, Deconvolution, FullyConnected or "
                                 "MatrixMultiply",
                           j->o->n_keep ? " and is not kept" : "");
    return status;
}

/* ---- data ----------------------------------------------------------------------------
 */

static bool show_step(void *of, const char *what, size_t i, size_t n)
{
    struct job *j = of;
    const struct progress_state s = {.layer = what, .index = i, .count = n};
    progress_show(&j->progress, &s);
    return !progress_interrupted();
}

static int load_sample(void *of, strata_context *c, size_t i, strata_error *err)
{
    return data_load(&((struct job *)of)->data, c, i, err);
}

/* Of many samples some, evenly spread. */
static int load_some(void *of, strata_context *c, size_t i, strata_error *err)
{
    struct job *j = of;
    return data_load(&j->data, c, i * j->samples.n / j->some.n, err);
}

static int open_data(struct job *j, strata_error *err)
{
    const struct quantise_options *o = j->o;
    if (!o->n_data)
        return STRATA_OK;
    if (j->session.network->n_states)
        return error_set(
            err, STRATA_EINVAL,
            "%s: has [state]: samples are runs of their own, and what such a "
            "network holds comes of the runs before; use --weights-only, or "
            "--ranges of a network without states",
            j->session.network->path);
    int status = data_open(&j->data, j->session.network, o->data, o->n_data, err);
    const size_t n = j->data.n, some = (size_t)o->samples;
    j->samples = (struct samples){n, j, load_sample, show_step};
    j->some = (struct samples){some && some < n ? some : n, j, load_some, show_step};
    if (status == STRATA_OK && o->labels)
        status = labels_read(&j->labels, o->labels, n, err);
    if (status == STRATA_OK)
        status = probe_open(&j->floats, j->session.handle, j->session.network, err);
    return status;
}

/* ---- ranges --------------------------------------------------------------------------
 */

static int collect(struct job *j, strata_error *err)
{
    const struct quantise_options *o = j->o;
    struct collection c;
    int status = collection_open(&c, &j->scheme, err);
    if (status != STRATA_OK)
        return status;
    if (o->collected)
        status = collected_read(&c, o->collected, j->some.n, err);
    if (status == STRATA_OK) {
        status = collection_run(&c, j->floats.context, &j->some, j->some.n, err);
        /* What there is, is kept, interrupted or not. */
        strata_error why = {0};
        const int kept =
            o->collected ? collected_write(&c, o->collected, j->some.n, &why) : STRATA_OK;
        if (status == STRATA_OK && kept != STRATA_OK) {
            *err = why;
            status = kept;
        } else if (status != STRATA_OK && o->collected && kept == STRATA_OK) {
            error_append(err,
                         "; %s holds what was collected, and the same command goes "
                         "on from there",
                         o->collected);
        }
    }
    if (status == STRATA_OK)
        status = collection_ranges(&j->ranges, &c, o->method, o->to, o->share, err);
    if (status == STRATA_OK)
        status = collection_saturated(&j->saturated, &c, &j->ranges, err);
    if (status == STRATA_OK && o->save_ranges)
        status = ranges_write(&j->ranges, o->save_ranges, err);
    collection_free(&c);
    return status;
}

static int find_ranges(struct job *j, strata_error *err)
{
    if (j->o->weights_only)
        return STRATA_OK;
    if (!j->o->ranges)
        return collect(j, err);
    int status = ranges_read(&j->ranges, j->o->ranges, err);
    if (status == STRATA_OK && (status = ranges_share(&j->ranges, &j->scheme, err)))
        error_prefix(err, "%s", j->o->ranges);
    return status;
}

/* ---- losses --------------------------------------------------------------------------
 */

static int measure_layers(struct job *j, strata_error *err)
{
    struct probe t;
    int status = probe_open_quantised(&t, j->session.handle, &j->quantising, err);
    if (status == STRATA_OK)
        status = losses_open(&j->losses, &j->scheme, err);
    if (status == STRATA_OK)
        status = losses_run(&j->losses, &j->floats, &t, &j->some, j->some.n, err);
    probe_close(&t);
    if (status != STRATA_OK || j->o->no_bias)
        return status;
    status = losses_corrections(&j->corrections, &j->losses, err);
    j->quantising.corrections = j->corrections;
    return status;
}

static size_t most_lost(const struct job *j)
{
    return (size_t)(j->o->budget / 100 * (double)j->samples.n);
}

static int measure_answers(struct job *j, strata_error *err)
{
    const struct quantise_options *o = j->o;
    const struct experiment x = {&j->floats, j->session.handle, &j->quantising,
                                 &j->samples, j->labels};
    int status = experiment_answers(&j->answers, &x, j->keep, "answers in 8 bits", err);
    if (status == STRATA_OK)
        status = data_judge(&j->data, &j->answers, err);
    if (status == STRATA_OK && (o->sensitivity || o->budget >= 0)) {
        j->alone = zalloc(j->session.network->n_layers, sizeof *j->alone, "answers", err);
        status = j->alone ? experiment_alone(j->alone, &x, err) : STRATA_ENOMEM;
    }
    if (status == STRATA_OK && o->budget >= 0)
        status = experiment_choose(j->keep, &j->answers, &x, j->alone, most_lost(j), err);
    return status;
}

static int measure(struct job *j, strata_error *err)
{
    j->quantising = (struct quantising){.scheme = &j->scheme,
                                        .registry = j->session.registry,
                                        .ranges = &j->ranges,
                                        .saturated = j->saturated};
    if (!j->o->n_data)
        return STRATA_OK;
    int status = measure_layers(j, err);
    return status == STRATA_OK ? measure_answers(j, err) : status;
}

/* ---- files ---------------------------------------------------------------------------
 */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int write_labels(const strata_network *net, const char *path, strata_error *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = text_stream(&text, &size);
    for (size_t i = 0; f && i < net->n_labels; i++)
        fprintf(f, "%s\n", net->labels[i]);
    int status = f && text_finish(f, &text) ? file_write(path, text, size, err)
                                            : error_no_memory(err, 0, "labels");
    free(text);
    return status;
}

static int write_files(struct job *j, strata_error *err)
{
    const strata_network *net = j->session.network;
    const struct outputs *out = &j->outputs;
    struct quantised made = {.text = NULL};
    struct scheme scheme = {.net = NULL};
    struct quantising q = j->quantising;
    int status = scheme_make(&scheme, net, j->o->to, j->keep, form_of(j), err);
    q.scheme = &scheme;
    if (status == STRATA_OK) {
        const struct quantised_names names = {
            last_part(out->weights), out->has_labels ? last_part(out->labels) : NULL};
        status = quantised_make(&made, &q, &names, err);
    }
    if (status == STRATA_OK && out->has_labels)
        status = write_labels(net, out->labels, err);
    if (status == STRATA_OK)
        status = file_write(out->weights, made.weights, made.weights_size, err);
    if (status == STRATA_OK)
        status = file_write(j->o->output, made.text, made.text_size, err);
    quantised_free(&made);
    scheme_free(&scheme);
    return status;
}

/* ---- the command ---------------------------------------------------------------------
 */

static int print_report(const struct job *j, strata_error *err)
{
    const struct report r = {.scheme = &j->scheme,
                             .kept = j->keep,
                             .losses = j->losses.layers ? &j->losses : NULL,
                             .alone = j->alone,
                             .answers = j->o->n_data ? &j->answers : NULL,
                             .labelled = j->labels != NULL,
                             .format = j->o->common.format};
    return report_print(&r, err);
}

static int open_network(struct job *j, const char *path, strata_error *err)
{
    int status = tool_open_network(&j->session, &j->o->common, path, err);
    if (status != STRATA_OK)
        return status;
    const strata_network *net = j->session.network;
    const char *device = j->o->common.device;
    if (!device && strcmp(net->runtime.device, "auto") != 0)
        device = net->runtime.device;
    return strata_create(&j->session.handle, device, err);
}

static int quantise(struct job *j, const char *path, strata_error *err)
{
    struct tool_signals before;
    int status = open_network(j, path, err);
    if (status == STRATA_OK)
        status = outputs_find(&j->outputs, j->o, &j->session, err);
    if (status == STRATA_OK)
        status = choose_layers(j, err);
    if (status != STRATA_OK)
        return status;
    tool_begin_work(&before);
    progress_begin(&j->progress);
    status = open_data(j, err);
    if (status == STRATA_OK)
        status = find_ranges(j, err);
    if (status == STRATA_OK)
        status = measure(j, err);
    progress_end(&j->progress);
    tool_end_work(&before);
    if (status == STRATA_OK)
        status = write_files(j, err);
    return status == STRATA_OK ? print_report(j, err) : status;
}

static int run_quantise(int argc, char **argv)
{
    struct quantise_options o;
    struct job j = {.o = &o};
    strata_error err;
    error_clear(&err);
    int code = quantise_read_options(&o, &tool_quantise, argc, argv);
    if (code == EXIT_OK && o.common.help)
        code = tool_help(&tool_quantise);
    else if (code == EXIT_OK && quantise(&j, argv[optind], &err) != STRATA_OK)
        code = tool_fail(&err);
    close_job(&j);
    quantise_free_options(&o);
    return code;
}

const struct tool_command tool_quantise = {
    .name = "quantise",
    .summary = "Make a network of int8, and tell what that costs",
    .usage = "NET.ini --data FOLDER -o NET-INT8.ini [OPTION...]",
    .help =
        "Runs the network on the data, chooses a range for every tensor that becomes "
        "int8,\n"
        "and writes the network with Quantize and Dequantize layers, its weights as "
        "int8\n"
        "with a scale each output channel, and its biases corrected by the mean of what\n"
        "that changed. Names stay, so that `strata compare NET.ini NET-INT8.ini` shows "
        "every\n"
        "tensor. docs/quantise.md tells how.\n\n"
        "Options:\n"
        "  -o, --output=FILE     the network; its weights go beside it\n"
        "      --data=[NAME=]PATH  what to run it on: a folder, each of whose files is "
        "a\n"
        "                        sample as `strata run` takes it; an IDX file of images; "
        "an\n"
        "                        .npy file whose first dim counts samples; or one file. "
        "For\n"
        "                        several inputs one each, NAME their names\n"
        "      --samples=N       collect ranges from so many of them, evenly spread\n"
        "                        (default: all)\n"
        "      --to=DTYPE        int8 (default); or e4m3, of which products of matrices\n"
        "                        are made (math = tensor_op lets GPUs sum them)\n"
        "      --method=METHOD   mse (default), max, percentile or entropy; of e4m3 max\n"
        "                        (default) or percentile\n"
        "      --share=PERCENT   of the values inside by percentile (default 99.99)\n"
        "      --save-ranges=FILE  keep the ranges, as text\n"
        "      --ranges=FILE     take these ranges instead of collecting any\n"
        "      --collected=FILE  keep what is collected, and go on from it next time\n"
        "      --keep=LAYER      leave a layer in floats (repeatable)\n"
        "      --float-first     leave convolutions that read an input of fewer than 16\n"
        "                        channels in floats\n"
        "      --labels=FILE     the class of each sample: a line each, .npy or IDX\n"
        "      --sensitivity     the answers with each layer quantised alone, too\n"
        "      --budget=PERCENT  of all labelled samples so many more may be wrong, as "
        "0.5:\n"
        "                        the most sensitive layers stay floats until that "
        "holds\n"
        "      --weights-only    few bits for weights of MatrixMultiply alone; needs no "
        "data\n"
        "      --bits=N          how many they have: 8 (default) or 4\n"
        "      --group=N         a scale for every N values along a column, as 128, not "
        "for\n"
        "                        all of it\n"
        "      --no-bias-correction  leave the biases as they are\n\n"
        "Columns: dB are signal over noise, 6 for each bit; weights, the layer's output "
        "on\n"
        "inputs of the network of floats, the same with its bias corrected, and the\n"
        "network's outputs with the layer quantised alone.\n",
    .examples =
        "  strata quantise net.ini --data photos -o net-int8.ini\n"
        "  strata quantise net.ini --data photos -o net-int8.ini --method entropy "
        "--save-ranges net.ranges\n"
        "  strata quantise net.ini --ranges net.ranges -o net-int8.ini\n"
        "  strata quantise mnist.ini --data t10k-images.idx --labels t10k-labels.idx "
        "--budget 0.5 -o mnist-int8.ini\n"
        "  strata quantise net.ini --data samples --to e4m3 -o net-e4m3.ini\n"
        "  strata quantise llama.ini --weights-only -o llama-int8.ini\n"
        "  strata quantise llama.ini --weights-only --bits 4 --group 128 -o "
        "llama-int4.ini\n",
    .run = run_quantise,
};
