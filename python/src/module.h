/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of the extension `strata._strata`.
 *
 *   module     its functions and types, and the log
 *   process    which process this is; memory, types
 *   error      a failure of the library as an exception
 *   dtype      element types of the library, of buffers and of DLPack
 *   array      what callers hand in: buffers, DLPack, tensors of our own
 *   tensor     what they get: memory with a shape, and who owns it
 *   exchange   tensors for DLPack and CUDA's array interface
 *   stack      many arrays into one
 *   handle     a device's
 *   network    an engine with what it needs
 *   describe   what it tells of itself
 *   context    one execution state: its sizes, and arrays in its formats
 *   lease      a context that tensors are views of
 *   call       network(...)
 *   session    buffers bound once
 *   submit     the batcher's requests, and the queue that they end in
 *   layer      layers of Python functions: tables; layer_run: how they are called;
 *              layer_slot: by whom
 *
 * Objects are used with the interpreter's lock held; what can wait gives it back.
 */
#ifndef PYTHON_MODULE_H
#define PYTHON_MODULE_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030b0000
#endif
#include <Python.h>

#include <stdbool.h>

#include <strata/batcher.h>
#include <strata/parts.h>
#include <strata/sizes.h>

#include "python/src/dlpack.h"

#define ALIGNMENT 256        /* of memory that is bound where it is */
enum { MOST_BINDINGS = 64 }; /* of a network */
#define OBJECT(o) ((PyObject *)(o))
#define PYTHON(...) ((PyCFunction)(void (*)(void))(__VA_ARGS__))

/* ---- error ----------------------------------------------------------------------- */

/* Sets the exception for a failure; NULL, to be returned. */
PyObject *raise_error(const strata_error *err);
PyObject *raise_status(int status, const char *message);

/* ---- process --------------------------------------------------------------------- */

/* False: not possible. */
bool process_watch(void);
/* Of this process: an object that has another is a parent's. */
unsigned process_generation(void);
/* Sets RuntimeError in a child that was forked. */
bool check_process(unsigned generation);
/* A type from its spec, added to the module unless its name begins with _. */
PyTypeObject *add_type(PyObject *module, PyType_Spec *spec);
/* Memory with ALIGNMENT, of free; NULL with MemoryError set. */
void *aligned_memory(size_t bytes);

/* ---- dtype ----------------------------------------------------------------------- */

/* The character of struct's formats; NULL: it has none. */
const char *dtype_format(int dtype);
/* Of a buffer's format and item size; -1: there is none. */
int dtype_of_format(const char *format, Py_ssize_t size);
int dtype_of_dlpack(int code, int bits, int lanes);
void dtype_to_dlpack(int dtype, struct dl_tensor *out);
/* NumPy's type string, "<f4"; NULL: none. */
const char *dtype_typestr(int dtype);
int dtype_of_name(const char *name);

/* ---- array ----------------------------------------------------------------------- */

/* Memory that a caller handed in. */
struct array {
    strata_desc desc; /* any strides */
    char *data;
    int device, device_id; /* DL_* */
    PyObject *owner;       /* a tensor or a capsule, or NULL */
    Py_buffer view;        /* where there is no owner */
};
/* Sets an exception that names the array, and gives false. stream: of whoever will use
 * memory of CUDA, for DLPack's producers. */
bool array_take(struct array *a, PyObject *object, const char *name, bool writable,
                void *stream);
void array_release(struct array *a);
/* Whether it is as a description has it, in type, dims, and the strides of dims that have
 * more than one element. */
bool array_is(const struct array *a, const strata_desc *d);

/* ---- tensor ---------------------------------------------------------------------- */

/* MEMORY_ENDED: it was borrowed, and is the owner's alone again. */
enum tensor_memory { MEMORY_OWN, MEMORY_PINNED, MEMORY_BORROWED, MEMORY_ENDED };

typedef struct {
    PyObject_HEAD strata_desc desc; /* no vectors */
    char *data;
    size_t bytes;
    enum tensor_memory memory;
    bool readonly;
    int device, device_id; /* DL_* */
    PyObject *base;        /* of MEMORY_PINNED: its Handle; of borrowed: who has it */
    void *stream;          /* on CUDA: where its values are written */
    Py_ssize_t exports;
    Py_ssize_t shape[STRATA_MAX_RANK], strides[STRATA_MAX_RANK]; /* bytes */
} Tensor;
extern PyTypeObject *TensorType;
bool tensor_register(PyObject *module);
/* A new reference; memory of its own, or `data` of base. */
Tensor *tensor_make(const strata_desc *desc, void *data, PyObject *base);
Tensor *tensor_pinned(const strata_desc *desc, PyObject *handle);
/* Sets BufferError where its memory is not there any more, or may only be read. */
bool tensor_check(const Tensor *t, bool writable);
/* exchange.c */
PyObject *tensor_dlpack(Tensor *t, PyObject *args, PyObject *kwargs);
PyObject *tensor_dlpack_device(Tensor *t, PyObject *unused);
PyObject *tensor_cuda_interface(Tensor *t, void *unused);

/* ---- stack ----------------------------------------------------------------------- */

/* Of METH_FASTCALL: arrays, and the tensor whose first rows they become. */
PyObject *stack(PyObject *module, PyObject *const *args, Py_ssize_t n_args);

/* ---- network --------------------------------------------------------------------- */

/* A device's handle, which pinned memory is of. */
typedef struct {
    PyObject_HEAD strata_handle *handle;
    unsigned generation;
    bool is_cuda;
    unsigned long long pinned; /* bytes of tensors */
} Handle;
bool handle_register(PyObject *module);
Handle *handle_open(const char *device);

struct context;
typedef struct {
    PyObject_HEAD Handle *handle;
    strata_registry *registry;
    strata_network *network; /* NULL: from an engine file */
    strata_engine *engine;
    strata_batcher *batcher; /* or NULL: none yet */
    int64_t most_rows;       /* of one of its requests */
    unsigned generation;
    bool on_host;
    int device_id;
    char device[32];
    int n, n_in;
    strata_binding *bindings; /* at the largest sizes */
    PyObject *names;          /* tuple of str */
    PyObject *outputs_type;   /* strata._outputs.Outputs */
    PyObject *queue;          /* of requests, or NULL: none yet */
    PyObject *request_type;   /* strata._requests.Request, with the queue */
    PyObject *layers;         /* tuple of Tables that the registry has */
    struct context *idle;     /* of calls */
} Network;
bool network_register(PyObject *module);
/* describe.c: in this process; else an exception is set. */
bool network_check(const Network *n);
/* Index of a binding's name, or -1 with an exception set. */
int network_find(const Network *n, PyObject *name);
/* describe.c */
PyObject *network_bindings(Network *n, PyObject *unused);
PyObject *network_dimensions(Network *n, PyObject *unused);
PyObject *network_facts(Network *n, PyObject *unused);
PyObject *network_labels(Network *n, PyObject *unused);
PyObject *network_given(Network *n, PyObject *unused);
PyObject *network_stats(Network *n, PyObject *unused);

/* ---- context --------------------------------------------------------------------- */

/* One execution state with a stream of its own. */
struct context {
    struct context *next; /* in a network's idle ones */
    strata_handle *handle;
    strata_stream *foreign; /* that it is on; NULL: the handle's */
    strata_context *context;
    strata_binding *bindings; /* at the sizes that are set */
    void **staged;            /* of inputs that must be converted */
    const void **seen;        /* addresses of the last call's inputs */
    unsigned repeats;         /* calls in a row with the same */
    unsigned patience;        /* as many before they are bound */
    bool bound;               /* they are */
    strata_error err;
};
/* An exception is set where NULL or false is given. stream: cudaStream_t of others, of
 * which `foreign` tells that there is one. */
struct context *context_open(const Network *n, bool foreign, void *stream);
void context_close(struct context *c, const Network *n);
/* The shapes of all inputs. */
bool context_set_shapes(struct context *c, const Network *n, const struct array *inputs);
int64_t context_rows_of(const struct context *c, const Network *n);
/* The array as the binding has it: its own memory, or a converted copy. NULL with an
 * exception where it is of another type and must not be cast. */
void *context_convert(struct context *c, const Network *n, int index,
                      const struct array *a, bool cast);
/* What is put on its stream from now on waits for what is on another of CUDA. */
bool context_follow(struct context *c, void *native);
/* Inputs that come from the same memory of the device over and over are used where they
 * are: whether those of the next run are, which strata_context_run then computes. */
bool context_bind_inputs(struct context *c, const Network *n, const struct array *inputs,
                         bool *bound);
int context_read_sizes(struct context *c, const Network *n);
/* Dims of a binding, row by row in memory. */
strata_desc context_plain(const strata_binding *b);
bool binding_is_plain(const strata_binding *b);

/* ---- lease ----------------------------------------------------------------------- */

/* Keeps a context while tensors are views of its memory; then it goes back to the calls'
 * idle ones, or ends. */
typedef struct {
    PyObject_HEAD Network *network;
    struct context *context;
    bool reuse;
} Lease;
bool lease_register(PyObject *module);
/* The context is the lease's, also where it fails. */
Lease *lease_make(Network *n, struct context *c, bool reuse);
/* The memory of a binding as it is now. */
PyObject *lease_view(Lease *lease, int index);

/* ---- layer ----------------------------------------------------------------------- */

bool layer_register(PyObject *module);
/* Whether it is a layer's tables; to a registry, which they must outlive. */
bool layer_is(PyObject *object);
int layer_give(PyObject *object, strata_registry *registry, strata_error *err);
/* Raises what a registry says against them. */
PyObject *layer_validate(PyObject *module, PyObject *object);

/* ---- call, session, submit ------------------------------------------------------- */

PyObject *network_call(PyObject *self, PyObject *args, PyObject *kwargs);
/* Inputs by position or name: n->n_in borrowed references. args: the names' values last.
 */
bool call_vector(const Network *n, PyObject *const *args, Py_ssize_t n_args,
                 PyObject *names, PyObject **inputs);
/* The cudaStream_t of an int, or of an object that has one. */
bool call_stream(PyObject *object, void **native);
bool session_register(PyObject *module);
PyObject *network_session(Network *n, PyObject *args, PyObject *kwargs);
bool submit_register(PyObject *module);
/* Of METH_FASTCALL: with a future of the network's, or for a queue and a future that are
 * given. */
PyObject *network_submit(Network *n, PyObject *const *args, Py_ssize_t n_args,
                         PyObject *names);
PyObject *network_submit_to(Network *n, PyObject *const *args, Py_ssize_t n_args,
                            PyObject *names);
PyObject *network_use_queue(Network *n, PyObject *args);
PyObject *network_open_batcher(Network *n, PyObject *args, PyObject *kwargs);
void network_close_batcher(Network *n);

#endif /* PYTHON_MODULE_H */
