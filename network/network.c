/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading a network, step by step, and what its users ask of it.
 */
#include "network/network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "core/arguments.h"
#include "io/file.h"
#include "network/private.h"

static void free_layer(struct network_layer *layer)
{
    for (size_t i = 0; layer->weights && layer->type && i < layer->type->n_weights; i++)
        free(layer->weights[i].name);
    free(layer->weights);
    free(layer->name);
    free(layer->params);
    free(layer->params_memory);
    free(layer->names);
    free(layer->inputs);
    free(layer->ports);
    free(layer->outputs);
    free(layer->impl);
}

static void free_loader(struct loader *l)
{
    for (size_t i = 0; i < l->n_drafts; i++) {
        struct draft *d = &l->drafts[i];
        free_layer(&d->layer);
        config_list_free(d->inputs, d->n_inputs);
        free(d->references);
        free(d->weight_places);
    }
    free(l->drafts);
    free(l->begun);
    free(l->sources);
    free(l->types);
    free(l->order);
    names_free(&l->source_index);
    names_free(&l->node_index);
    names_free(&l->type_index);
}

strata_network *network_retain(const strata_network *net)
{
    strata_network *shared = (strata_network *)net; /* only the count changes */
    atomic_fetch_add_explicit(&shared->references, 1, memory_order_relaxed);
    return shared;
}

static void free_merged(struct network_merged *m)
{
    for (size_t i = 0; i < m->n; i++)
        free(m->blocks[i]);
    free(m->blocks);
    free(m);
}

const strata_network *network_loaded(const strata_network *net)
{
    while (net->base)
        net = net->base;
    return net;
}

void strata_network_destroy(strata_network *net)
{
    if (!net || atomic_fetch_sub_explicit(&net->references, 1, memory_order_acq_rel) > 0)
        return;
    if (net->base) {
        if (net->merged && net->merged != net->base->merged)
            free_merged(net->merged);
        else
            network_free_own_layers(net);
        strata_network_destroy((strata_network *)net->base);
        free(net->tensors);
        free(net);
        return;
    }
    for (size_t i = 0; i < net->n_tensors; i++)
        free(net->tensors[i].name);
    for (size_t i = 0; i < net->n_layers; i++)
        free_layer(&net->layers[i]);
    for (size_t i = 0; i < net->n_inputs; i++)
        free(net->inputs[i].name);
    for (size_t i = 0; i < net->n_outputs; i++)
        free(net->outputs[i].name);
    free(net->states);
    for (size_t i = 0; i < net->n_files; i++)
        weights_close(net->files[i]);
    for (size_t i = 0; i < net->n_labels; i++)
        free(net->labels[i]);
    free(net->tensors);
    free(net->layers);
    for (size_t i = 0; i < net->n_symbols; i++)
        free(net->symbols[i].name);
    free(net->symbols);
    free(net->inputs);
    free(net->outputs);
    free(net->files);
    for (size_t i = 0; i < net->n_paths; i++)
        free(net->paths[i]);
    free(net->labels);
    free(net->paths);
    free(net->path);
    free(net->name);
    free(net->runtime.device);
    free(net->build.costs.file);
    free(net->build.costs.save);
    config_free(net->config);
    free(net);
}

bool network_reads(const strata_network *net, const char *path)
{
    const strata_network *own = network_loaded(net);
    const char *costs = own->build.costs.file;
    bool reads = config_reads(own->config, path) || file_same(own->path, path) ||
                 (costs && file_same(costs, path));
    for (size_t i = 0; i < own->n_paths && !reads; i++)
        reads = file_same(own->paths[i], path);
    return reads;
}

/* Give the network its own name for a tensor: "split" or "split:1". */
static char *tensor_name(const char *layer, int port, strata_error *err)
{
    char suffix[16] = "";
    if (port)
        snprintf(suffix, sizeof suffix, ":%d", port);
    size_t n = strlen(layer), size = n + strlen(suffix) + 1;
    char *name = zalloc(size, 1, "a tensor's name", err);
    if (name) {
        memcpy(name, layer, n);
        memcpy(name + n, suffix, strlen(suffix));
    }
    return name;
}

/* Append a tensor; shapes come later. */
static int add_tensor(strata_network *net, const char *name, int producer, int port,
                      strata_error *err)
{
    struct network_tensor *t = &net->tensors[net->n_tensors];
    t->name = tensor_name(name, producer < 0 ? 0 : port, err);
    t->producer = producer;
    t->port = port;
    net->n_tensors += t->name != NULL;
    return t->name ? STRATA_OK : STRATA_ENOMEM;
}

static int count_tensors(struct loader *l, size_t *out)
{
    size_t n = l->net->n_inputs;
    for (size_t i = 0; i < l->n_drafts; i++)
        n += (size_t)l->drafts[i].layer.n_outputs;
    *out = n;
    if (n > NETWORK_MAX_TENSORS)
        return error_set(l->err, STRATA_EOVERFLOW,
                         "%s: %zu tensors; at most %d are allowed", l->net->path, n,
                         NETWORK_MAX_TENSORS);
    return STRATA_OK;
}

/* The tensors that a layer reads, and which of its inputs they are. */
static int place_inputs(struct loader *l, const struct draft *d,
                        struct network_layer *layer)
{
    const strata_network *net = l->net;
    layer->ports = zalloc(d->n_references, sizeof *layer->ports, "inputs", l->err);
    if (!layer->ports)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < d->n_references; i++) {
        struct reference r = d->references[i];
        if (r.node == NODE_NONE)
            continue;
        layer->ports[layer->n_inputs] = (int)i;
        layer->inputs[layer->n_inputs++] =
            r.node < (int)net->n_inputs
                ? net->inputs[r.node].tensor
                : l->drafts[r.node - (int)net->n_inputs].first_tensor + r.port;
    }
    if (layer->n_inputs == layer->n_ports) {
        free(layer->ports);
        layer->ports = NULL;
    }
    return STRATA_OK;
}

/* Move a draft's layer into the network and make its tensors. */
static int place_layer(struct loader *l, struct draft *d)
{
    strata_network *net = l->net;
    int index = (int)net->n_layers, status = STRATA_OK;
    struct network_layer *layer = &net->layers[net->n_layers++];
    *layer = d->layer;
    d->layer = (struct network_layer){.n_outputs = layer->n_outputs};
    layer->n_ports = (int)d->n_references;
    layer->inputs = zalloc(d->n_references, sizeof(int), "inputs", l->err);
    layer->outputs = zalloc((size_t)layer->n_outputs, sizeof(int), "outputs", l->err);
    if (!layer->inputs || !layer->outputs)
        return STRATA_ENOMEM;
    d->first_tensor = (int)net->n_tensors;
    status = place_inputs(l, d, layer);
    for (int port = 0; status == STRATA_OK && port < layer->n_outputs; port++) {
        layer->outputs[port] = (int)net->n_tensors;
        net->tensors[net->n_tensors].formats = layer->formats;
        status = add_tensor(net, layer->name, index, port, l->err);
    }
    return status;
}

/* Tensors of inputs exist already, with their shapes; those of layers follow, in order.
 */
static int place_layers(struct loader *l)
{
    size_t n;
    int status = count_tensors(l, &n);
    if (status != STRATA_OK)
        return status;
    struct network_tensor *tensors =
        realloc(l->net->tensors, (n ? n : 1) * sizeof *tensors);
    if (!tensors)
        return error_no_memory(l->err, n * sizeof *tensors, "tensors");
    memset(tensors + l->net->n_tensors, 0, (n - l->net->n_tensors) * sizeof *tensors);
    l->net->tensors = tensors;
    l->net->layers = zalloc(l->n_drafts, sizeof *l->net->layers, "layers", l->err);
    if (!l->net->layers)
        return STRATA_ENOMEM;
    for (size_t i = 0; status == STRATA_OK && i < l->n_drafts; i++)
        status = place_layer(l, &l->drafts[l->order[i]]);
    return status;
}

/* The steps; errors of the file end them at the next point where they would mislead. */
static int load(struct loader *l)
{
    static int (*const steps[])(struct loader *) = {
        network_read_sections, network_read_sources, network_read_layers,
        network_doubt_weights, network_resolve,      network_sort,
        place_layers,          network_infer,        network_read_outputs,
        network_read_states,   network_find_slice,
    };
    for (size_t i = 0; i < ARRAY_LENGTH(steps); i++) {
        int status = steps[i](l);
        if (config_no_memory(l->c)) { /* values are missing: what follows would mislead */
            error_clear(l->err);
            break;
        }
        if (status == STRATA_ENOMEM || (status != STRATA_OK && !config_errors(l->c)))
            return status;
        if (status != STRATA_OK) { /* what was recorded before is the likely cause */
            error_clear(l->err);
            break;
        }
        bool graph = steps[i] == network_resolve || steps[i] == network_sort;
        if (graph && config_errors(l->c))
            break;
    }
    if (!config_errors(l->c))
        config_check_profile(l->c);
    return config_finish(l->c, l->err);
}

static int start(struct loader *l, const char *path,
                 const strata_network_options *options)
{
    strata_network *net = zalloc(1, sizeof *net, "a network", l->err);
    if (!net)
        return STRATA_ENOMEM;
    l->net = net;
    net->build.fusion = net->build.merge = true;
    net->build.trials = TRIALS_UNSAID;
    net->build.memory_slack = 5;
    net->build.memory_plans = 32;
    net->build.plan_nodes = 10000;
    net->bench = (struct bench_options){.warmup = 200000000,
                                        .duration = 3000000000,
                                        .iterations = 10,
                                        .streams = 1,
                                        .in_flight = 1,
                                        .percentiles = {90, 95, 99},
                                        .n_percentiles = 3};
    net->path = duplicate(path, l->err);
    net->runtime.device = duplicate("auto", l->err);
    net->runtime.wait = STRATA_WAIT_YIELD;
    net->runtime.graph = true;
    if (!net->path || !net->runtime.device)
        return STRATA_ENOMEM;
    const struct network_memory *m = l->memory;
    int status =
        m ? config_parse(&net->config, m->text, m->text_size, path, options, l->err)
          : config_load(&net->config, path, options, l->err);
    l->c = net->config;
    return status;
}

/* A tensor that nobody reads is computed for nothing; most often a name was forgotten. Of
 * a layer's several outputs, as an LSTM's last states, one that is read is enough. */
static void warn_unread(const strata_network *net)
{
    bool *read = zalloc(net->n_tensors, sizeof *read, "tensors", NULL);
    bool *used = zalloc(net->n_layers, sizeof *used, "layers", NULL);
    for (size_t i = 0; read && i < net->n_layers; i++)
        for (int k = 0; k < net->layers[i].n_inputs; k++)
            read[net->layers[i].inputs[k]] = true;
    for (size_t i = 0; read && i < net->n_outputs; i++)
        read[net->outputs[i].tensor] = true;
    for (size_t i = 0; read && used && i < net->n_tensors; i++)
        if (read[i] && net->tensors[i].producer >= 0)
            used[net->tensors[i].producer] = true;
    for (size_t i = 0; read && used && i < net->n_tensors; i++)
        if (!read[i] && (net->tensors[i].producer < 0 || !used[net->tensors[i].producer]))
            log_line(STRATA_LOG_WARNING, "%s: nothing reads '%s', and it is no output",
                     net->path, net->tensors[i].name);
    free(used);
    free(read);
}

static int open_network(strata_network **out, struct loader *l, const char *path,
                        const strata_network_options *options)
{
    int status = start(l, path, options);
    if (status == STRATA_OK)
        status = load(l);
    free_loader(l);
    if (status != STRATA_OK) {
        strata_network_destroy(l->net);
        return status;
    }
    *out = l->net;
    return STRATA_OK;
}

int network_parse(strata_network **out, const struct network_memory *memory,
                  const char *name, strata_registry *registry, strata_error *err)
{
    struct loader l = {.registry = registry, .memory = memory, .err = err};
    const strata_network_options none = {0};
    *out = NULL;
    return open_network(out, &l, name, &none);
}

/* A model of another kind would be told as hundreds of malformed lines. */
static int refuse_foreign(const char *path, strata_error *err)
{
    static const struct {
        const char *suffix, *is;
    } kinds[] = {
        {".pb", "a protobuf model (ONNX, TensorFlow or Caffe2)"},
        {".pbtxt", "a protobuf model in text form"},
        {".prototxt", "a Caffe model"},
        {".caffemodel", "weights of Caffe"},
        {".tflite", "a TensorFlow Lite model"},
        {".pt", "a PyTorch file"},
        {".pth", "a PyTorch file"},
        {".h5", "an HDF5 file (Keras)"},
        {".param", "an ncnn model"},
        {".safetensors", "a file of weights"},
        {".npy", "a file of one tensor"},
    };
    const char *dot = strrchr(path, '.');
    if (dot && strcasecmp(dot, ".onnx") == 0)
        return error_set(err, STRATA_EINVAL,
                         "%s: is an ONNX model by its name; a network is an INI file: "
                         "`strata import` writes one of it",
                         path);
    for (size_t i = 0; dot && i < ARRAY_LENGTH(kinds); i++)
        if (strcasecmp(dot, kinds[i].suffix) == 0)
            return error_set(
                err, STRATA_EINVAL,
                "%s: is %s by its name; a network is an INI file, written by "
                "hand or by a script: docs/porting.md shows how, and `strata "
                "describe LAYER` prints a section to start from",
                path, kinds[i].is);
    return STRATA_OK;
}

static int check_texts(const char *const *texts, size_t n, const char *what,
                       strata_error *err)
{
    if (n > 0 && !texts)
        return error_set(err, STRATA_EINVAL, "strata_network_options.%s is NULL for %zu",
                         what, n);
    for (size_t i = 0; i < n; i++)
        if (!texts[i])
            return error_set(err, STRATA_EINVAL, "strata_network_options.%s[%zu] is NULL",
                             what, i);
    return STRATA_OK;
}

/* What an older application does not know is none. */
static int read_options(strata_network_options *out, const strata_network_options *from,
                        strata_error *err)
{
    *out = (strata_network_options){.struct_size = sizeof *out};
    if (!from)
        return STRATA_OK;
    int status =
        struct_check(from->struct_size, SIZE_THROUGH(strata_network_options, n_define),
                     "strata_network_options", err);
    if (status != STRATA_OK)
        return status;
    struct_take(out, sizeof *out, from, from->struct_size);
    if ((status = check_texts(out->set, out->n_set, "set", err)) != STRATA_OK)
        return status;
    return check_texts(out->define, out->n_define, "define", err);
}

int strata_network_load(strata_network **out, const char *path, strata_registry *registry,
                        const strata_network_options *options, strata_error *err)
{
    struct loader l = {.registry = registry, .err = err};
    strata_network_options known;
    if (out)
        *out = NULL;
    int status = ARGUMENTS(err, {"out", out}, {"path", path}, {"registry", registry});
    if (status != STRATA_OK)
        return status;
    if ((status = read_options(&known, options, err)) != STRATA_OK)
        return status;
    if ((status = refuse_foreign(path, err)) != STRATA_OK)
        return status;
    status = open_network(out, &l, path, &known);
    if (status == STRATA_OK) {
        warn_unread(*out);
        network_doubt_labels(*out);
    }
    return status;
}

const struct network_input *network_find_input(const strata_network *net,
                                               const char *name)
{
    for (size_t i = 0; i < net->n_inputs; i++)
        if (strcmp(net->inputs[i].name, name) == 0)
            return &net->inputs[i];
    return NULL;
}
