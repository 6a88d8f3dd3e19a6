/* SPDX-License-Identifier: Apache-2.0
 *
 * config.pbtxt of a model. Tensors are left to the backend, which knows the engine; but
 * where the network has labels, outputs are written, as that is where a label file is
 * named.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/stream.h"
#include "tools/deploy/deploy.h"

/* Elements of an output beside the batch. */
static int64_t row_elements(const struct deployment *d, const struct network_tensor *t)
{
    const int first = d->batch > 0;
    return network_elements(t->dims + first, t->rank - first);
}

static bool has_labels(const struct deployment *d, size_t output)
{
    const strata_network *net = d->engines->network;
    return net->n_labels > 0 &&
           row_elements(d, &net->tensors[net->outputs[output].tensor]) ==
               (int64_t)net->n_labels;
}

/* The server's name of a type; NULL: it has none. */
static const char *type_of(int dtype)
{
    static const char *const names[STRATA_DTYPE_COUNT] = {
        [STRATA_FP32] = "TYPE_FP32",   [STRATA_FP16] = "TYPE_FP16",
        [STRATA_INT8] = "TYPE_INT8",   [STRATA_UINT8] = "TYPE_UINT8",
        [STRATA_INT32] = "TYPE_INT32", [STRATA_INT64] = "TYPE_INT64",
        [STRATA_BOOL8] = "TYPE_BOOL",  [STRATA_BF16] = "TYPE_BF16",
        [STRATA_FP64] = "TYPE_FP64"};
    return dtype >= 0 && dtype < STRATA_DTYPE_COUNT ? names[dtype] : NULL;
}

/* Whether outputs can be written from the network alone: of fixed, linear shapes. */
static bool outputs_known(const struct deployment *d)
{
    const strata_network *net = d->engines->network;
    bool known = net->n_symbols == (net->batch_symbol >= 0), any = false;
    for (size_t i = 0; i < net->n_outputs - net->n_states; i++) {
        const struct network_output *o = &net->outputs[i];
        known = known && type_of(o->format.dtype) && o->format.order == ORDER_LINEAR &&
                o->format.vector == 1 && net->tensors[o->tensor].rank > (d->batch > 0);
        any = any || has_labels(d, i);
    }
    return known && any;
}

static void print_output(FILE *f, const struct deployment *d, size_t index)
{
    const strata_network *net = d->engines->network;
    const struct network_output *o = &net->outputs[index];
    const struct network_tensor *t = &net->tensors[o->tensor];
    fprintf(f, "  { name: \"%s\" data_type: %s dims: [", o->name,
            type_of(o->format.dtype));
    for (int k = d->batch > 0; k < t->rank; k++)
        fprintf(f, "%s%" PRId64, k > (d->batch > 0) ? ", " : " ", t->dims[k]);
    fprintf(f, " ]%s }", has_labels(d, index) ? " label_filename: \"labels.txt\"" : "");
}

static void print_outputs(FILE *f, const struct deployment *d)
{
    const strata_network *net = d->engines->network;
    fprintf(f, "output [\n");
    for (size_t i = 0; i < net->n_outputs - net->n_states; i++) {
        print_output(f, d, i);
        fprintf(f, "%s\n", i + 1 < net->n_outputs - net->n_states ? "," : "");
    }
    fprintf(f, "]\n");
}

static void print_batching(FILE *f, const struct deployment *d)
{
    if (d->batch == 0)
        return;
    fprintf(f, "max_batch_size: %" PRId64 "\n", d->batch);
    if (d->engines->network->n_states > 0 || d->batch == 1)
        return;
    fprintf(f, "dynamic_batching { preferred_batch_size: [");
    for (size_t i = 0; i < d->n_batches; i++)
        fprintf(f, "%s%" PRId64, i ? ", " : " ", d->batches[i]);
    fprintf(f, " ] }\n");
}

/* One kind of device says where instances go; of several, the server takes GPUs where it
 * has some. */
static void print_instances(FILE *f, const struct deployment *d)
{
    size_t on_host = 0;
    for (size_t i = 0; i < d->n; i++)
        on_host += !strcmp(d->engines[i].kind, "host");
    if (on_host == d->n)
        fprintf(f, "instance_group [ { kind: KIND_CPU count: 1 } ]\n");
    else if (on_host == 0)
        fprintf(f, "instance_group [ { kind: KIND_GPU count: 2 } ]\n");
}

static void print_files(FILE *f, const struct deployment *d)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct deployed *e = &d->engines[i];
        if (e->sm > 0)
            fprintf(f, "cc_model_filenames { key: \"%d.%d\" value: \"%s\" }  # %s\n",
                    e->sm / 10, e->sm % 10, e->name, e->device);
        else
            fprintf(f, "default_model_filename: \"%s\"\n", e->name);
    }
}

char *deploy_config(const struct deployment *d, bool *labels)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = text_stream(&text, &size);
    if (!f)
        return NULL;
    *labels = outputs_known(d);
    fprintf(f,
            "# Written by strata deploy. What is not said is completed from the engine.\n"
            "backend: \"strata\"\n");
    print_batching(f, d);
    if (*labels)
        print_outputs(f, d);
    print_instances(f, d);
    print_files(f, d);
    return text_finish(f, &text);
}
