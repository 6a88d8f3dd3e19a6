/* SPDX-License-Identifier: Apache-2.0
 *
 * The stand-in server. What a real one would find wrong (an answer sent twice, a request
 * released while its response is open) ends the test.
 */
#include "tests/serving/host_private.h"

#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct TRITONSERVER_Message {
    char *text;
};
struct TRITONSERVER_BufferAttributes {
    uint64_t bytes;
    TRITONSERVER_MemoryType type;
    int64_t id;
};
struct TRITONBACKEND_BackendAttribute {
    int groups;
    bool parallel;
};
static atomic_long objects, calls, failing, lines[4];
static char backend_config[1024];
static TRITONSERVER_Message config_message = {backend_config};
uint32_t host_minor = 19;

/* ---- faults and objects ------------------------------------------------------------ */

void *host_zeroed(size_t bytes)
{
    void *out = NULL;
    cr_assert_eq(posix_memalign(&out, 64, bytes), 0);
    return memset(out, 0, bytes);
}

void *host_make(size_t bytes)
{
    objects++;
    return host_zeroed(bytes);
}

static char *copy_text(const char *text)
{
    return strcpy(host_zeroed(strlen(text) + 1), text);
}

void host_count(long more)
{
    objects += more;
}

void host_drop(void *object)
{
    cr_assert_not_null(object);
    objects--;
    free(object);
}

TRITONSERVER_Error *host_fault(void)
{
    const long k = atomic_fetch_add(&calls, 1) + 1, at = atomic_load(&failing);
    return at > 0 && k == at ? TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "fault")
                             : NULL;
}

long host_objects(void)
{
    return objects;
}

long host_fail_at(long k)
{
    const long n = atomic_exchange(&calls, 0);
    failing = k;
    return n;
}

static void take_error(TRITONSERVER_Error *e, char *text)
{
    snprintf(text, 2048, "%s", e ? e->text : "");
    if (e)
        TRITONSERVER_ErrorDelete(e);
}

/* ---- the server's side of the API -------------------------------------------------- */

TRITONSERVER_Error *TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char *text)
{
    TRITONSERVER_Error *e = host_make(sizeof *e);
    e->code = code;
    snprintf(e->text, sizeof e->text, "%s", text);
    return e;
}

void TRITONSERVER_ErrorDelete(TRITONSERVER_Error *e)
{
    host_drop(e);
}

TRITONSERVER_Error_Code TRITONSERVER_ErrorCode(TRITONSERVER_Error *e)
{
    return e->code;
}

const char *TRITONSERVER_ErrorMessage(TRITONSERVER_Error *e)
{
    return e->text;
}

TRITONSERVER_Error *TRITONSERVER_LogMessage(TRITONSERVER_LogLevel level, const char *file,
                                            int line, const char *text)
{
    cr_assert(file && text && line >= 0);
    lines[level]++;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_MessageNewFromSerializedJson(TRITONSERVER_Message **out,
                                                              const char *text,
                                                              size_t bytes)
{
    MAY_FAIL;
    *out = host_make(sizeof **out);
    (*out)->text = host_make(bytes + 1);
    memcpy((*out)->text, text, bytes);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_MessageDelete(TRITONSERVER_Message *m)
{
    cr_assert_neq(m, &config_message, "the backend's config is the server's");
    host_drop(m->text);
    host_drop(m);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message *m,
                                                        const char **text, size_t *bytes)
{
    MAY_FAIL;
    *text = m->text;
    *bytes = strlen(m->text);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_BufferAttributesNew(TRITONSERVER_BufferAttributes **out)
{
    MAY_FAIL;
    *out = host_make(sizeof **out);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_BufferAttributesDelete(TRITONSERVER_BufferAttributes *b)
{
    host_drop(b);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetMemoryType(TRITONSERVER_BufferAttributes *b,
                                           TRITONSERVER_MemoryType type)
{
    MAY_FAIL;
    b->type = type;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetMemoryTypeId(TRITONSERVER_BufferAttributes *b, int64_t id)
{
    MAY_FAIL;
    b->id = id;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetByteSize(TRITONSERVER_BufferAttributes *b, size_t bytes)
{
    MAY_FAIL;
    b->bytes = bytes;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ApiVersion(uint32_t *major, uint32_t *minor)
{
    MAY_FAIL;
    *major = 1;
    *minor = host_minor;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_BackendConfig(TRITONBACKEND_Backend *b,
                                                TRITONSERVER_Message **out)
{
    MAY_FAIL;
    (void)b;
    *out = &config_message;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
    TRITONBACKEND_BackendAttribute *a, TRITONSERVER_InstanceGroupKind kind,
    uint64_t count, const uint64_t *devices, uint64_t n)
{
    MAY_FAIL;
    cr_assert(count > 0 && !devices && n == 0);
    cr_assert_eq(kind, a->groups == 0 ? TRITONSERVER_INSTANCEGROUPKIND_GPU
                                      : TRITONSERVER_INSTANCEGROUPKIND_CPU);
    a->groups++;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
    TRITONBACKEND_BackendAttribute *a, bool enabled)
{
    MAY_FAIL;
    a->parallel = enabled;
    return NULL;
}

#define TAKES(function, object)                                                          \
    TRITONSERVER_Error *function(object *o, void *state)                                 \
    {                                                                                    \
        MAY_FAIL;                                                                        \
        o->state = state;                                                                \
        return NULL;                                                                     \
    }
GIVES(TRITONBACKEND_BackendState, TRITONBACKEND_Backend, void **, o->state)
TAKES(TRITONBACKEND_BackendSetState, TRITONBACKEND_Backend)
GIVES(TRITONBACKEND_ModelName, TRITONBACKEND_Model, const char **, o->name)
GIVES(TRITONBACKEND_ModelVersion, TRITONBACKEND_Model, uint64_t *, o->version)
GIVES(TRITONBACKEND_ModelAutoCompleteConfig, TRITONBACKEND_Model, bool *, o->complete)
GIVES(TRITONBACKEND_ModelBackend, TRITONBACKEND_Model, TRITONBACKEND_Backend **,
      o->backend)
GIVES(TRITONBACKEND_ModelState, TRITONBACKEND_Model, void **, o->state)
TAKES(TRITONBACKEND_ModelSetState, TRITONBACKEND_Model)
GIVES(TRITONBACKEND_ModelInstanceName, TRITONBACKEND_ModelInstance, const char **,
      o->model->name)
GIVES(TRITONBACKEND_ModelInstanceKind, TRITONBACKEND_ModelInstance,
      TRITONSERVER_InstanceGroupKind *, o->kind)
GIVES(TRITONBACKEND_ModelInstanceDeviceId, TRITONBACKEND_ModelInstance, int32_t *,
      o->device)
GIVES(TRITONBACKEND_ModelInstanceModel, TRITONBACKEND_ModelInstance,
      TRITONBACKEND_Model **, o->model)
GIVES(TRITONBACKEND_ModelInstanceState, TRITONBACKEND_ModelInstance, void **, o->state)
TAKES(TRITONBACKEND_ModelInstanceSetState, TRITONBACKEND_ModelInstance)

TRITONSERVER_Error *TRITONBACKEND_ModelRepository(TRITONBACKEND_Model *m,
                                                  TRITONBACKEND_ArtifactType *type,
                                                  const char **folder)
{
    MAY_FAIL;
    *type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
    *folder = m->folder;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelConfig(TRITONBACKEND_Model *m, uint32_t version,
                                              TRITONSERVER_Message **out)
{
    cr_assert_eq(version, 1);
    return TRITONSERVER_MessageNewFromSerializedJson(out, m->config, strlen(m->config));
}

TRITONSERVER_Error *TRITONBACKEND_ModelSetConfig(TRITONBACKEND_Model *m, uint32_t version,
                                                 TRITONSERVER_Message *config)
{
    MAY_FAIL;
    cr_assert(version == 1 && m->complete);
    free(m->config);
    m->config = copy_text(config->text);
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelReportMemoryUsage(TRITONBACKEND_Model *m,
                                     TRITONSERVER_BufferAttributes **usage, uint32_t n)
{
    MAY_FAIL;
    cr_assert(n == 1 && usage[0]->type == TRITONSERVER_MEMORY_CPU && usage[0]->id == 0);
    m->report.memory = usage[0]->bytes;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportMemoryUsage(
    TRITONBACKEND_ModelInstance *i, TRITONSERVER_BufferAttributes **usage, uint32_t n)
{
    MAY_FAIL;
    cr_assert_eq(n, 1);
    i->report.memory = usage[0]->bytes;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportStatistics(
    TRITONBACKEND_ModelInstance *i, TRITONBACKEND_Request *r, bool success,
    uint64_t begun, uint64_t computing, uint64_t computed, uint64_t ended)
{
    MAY_FAIL;
    cr_assert(i && r->released == 0 && r->reported++ == 0);
    r->success = success;
    memcpy(r->times, (uint64_t[]){begun, computing, computed, ended}, sizeof r->times);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportBatchStatistics(
    TRITONBACKEND_ModelInstance *i, uint64_t rows, uint64_t begun, uint64_t computing,
    uint64_t computed, uint64_t ended)
{
    MAY_FAIL;
    cr_assert(rows > 0 && begun <= computing && computing <= computed &&
              computed <= ended);
    i->report.rows += rows;
    i->report.batches++;
    return NULL;
}

/* ---- what tests call --------------------------------------------------------------- */

TRITONBACKEND_Backend *host_open(const char *cmdline, char *text)
{
    TRITONBACKEND_BackendAttribute attributes = {0};
    TRITONBACKEND_Backend *b = host_zeroed(sizeof *b);
    snprintf(backend_config, sizeof backend_config, "{\"cmdline\":{%s}}", cmdline);
    take_error(TRITONBACKEND_Initialize(b), text);
    if (*text) {
        free(b);
        return NULL;
    }
    take_error(TRITONBACKEND_GetBackendAttribute(b, &attributes), text);
    cr_assert(*text || (attributes.groups == 2 && attributes.parallel));
    return b;
}

void host_close(TRITONBACKEND_Backend *b)
{
    char text[2048];
    take_error(TRITONBACKEND_Finalize(b), text);
    cr_assert_eq(text[0], 0, "%s", text);
    free(b);
}

TRITONBACKEND_Model *host_load(TRITONBACKEND_Backend *b, const char *folder,
                               const char *name, const char *config, bool complete,
                               char *text)
{
    TRITONBACKEND_Model *m = host_zeroed(sizeof *m);
    m->backend = b;
    m->complete = complete;
    m->version = 1;
    m->config = copy_text(config ? config : "{}");
    snprintf(m->name, sizeof m->name, "%s", name);
    snprintf(m->folder, sizeof m->folder, "%s/%s", folder, name);
    take_error(TRITONBACKEND_ModelInitialize(m), text);
    if (!*text)
        return m;
    free(m->config);
    free(m);
    return NULL;
}

void host_unload(TRITONBACKEND_Model *m)
{
    char text[2048];
    take_error(TRITONBACKEND_ModelFinalize(m), text);
    cr_assert_eq(text[0], 0, "%s", text);
    free(m->config);
    free(m);
}

TRITONBACKEND_ModelInstance *host_instance(TRITONBACKEND_Model *m,
                                           TRITONSERVER_InstanceGroupKind kind,
                                           int32_t device, char *text)
{
    TRITONBACKEND_ModelInstance *i = host_zeroed(sizeof *i);
    *i = (TRITONBACKEND_ModelInstance){.model = m, .kind = kind, .device = device};
    take_error(TRITONBACKEND_ModelInstanceInitialize(i), text);
    if (!*text)
        return i;
    free(i);
    return NULL;
}

void host_end(TRITONBACKEND_ModelInstance *i)
{
    char text[2048];
    take_error(TRITONBACKEND_ModelInstanceFinalize(i), text);
    cr_assert_eq(text[0], 0, "%s", text);
    free(i);
}

void host_execute(TRITONBACKEND_ModelInstance *i, TRITONBACKEND_Request *r, uint32_t n,
                  char *text)
{
    TRITONBACKEND_Request *list[64];
    cr_assert(n <= 64);
    for (uint32_t k = 0; k < n; k++)
        list[k] = &r[k];
    take_error(TRITONBACKEND_ModelInstanceExecute(i, list, n), text);
    for (uint32_t k = 0; k < n; k++)
        cr_assert(r[k].sent == !*text && r[k].released == !*text,
                  "request %u is answered %d times and released %d times (%s)", k,
                  r[k].sent, r[k].released, text);
}

void host_clear(TRITONBACKEND_Request *r)
{
    for (uint32_t k = 0; k < r->n_answers; k++)
        if (r->answers[k].data != r->place)
            free(r->answers[k].data);
    r->n_answers = 0;
    r->sent = r->released = r->reported = 0;
    r->success = false;
    r->text[0] = 0;
}

long host_lines(TRITONSERVER_LogLevel level)
{
    return lines[level];
}
