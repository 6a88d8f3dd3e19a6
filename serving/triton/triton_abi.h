/* SPDX-License-Identifier: Apache-2.0
 *
 * What this backend calls of Triton Inference Server, and what the server calls of it: as
 * much of the backend API as is used here, in C, which the server's own headers are not.
 * The server resolves the functions when it loads the module. Everything is of minor 17
 * (server 23.10) or older, but for TRITONBACKEND_ModelInstanceReady, which servers that
 * do not know it do not look for. serving/triton/abi_check.cc compares it with the real
 * headers where they are at hand.
 *
 * Calls give NULL where all went well, else an error that is the caller's to delete. The
 * server owns what the functions hand out, unless said otherwise.
 */
#ifndef SERVING_TRITON_TRITON_ABI_H
#define SERVING_TRITON_TRITON_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TRITON_API_MAJOR = 1, TRITON_API_MINOR = 17 };

/* ---- objects, opaque --------------------------------------------------------------- */

typedef struct TRITONSERVER_Error TRITONSERVER_Error;
typedef struct TRITONSERVER_Message TRITONSERVER_Message;
typedef struct TRITONSERVER_BufferAttributes TRITONSERVER_BufferAttributes;
typedef struct TRITONSERVER_Parameter TRITONSERVER_Parameter;
typedef struct TRITONSERVER_MetricFamily TRITONSERVER_MetricFamily;
typedef struct TRITONSERVER_Metric TRITONSERVER_Metric;
typedef struct TRITONBACKEND_Backend TRITONBACKEND_Backend;
typedef struct TRITONBACKEND_BackendAttribute TRITONBACKEND_BackendAttribute;
typedef struct TRITONBACKEND_Model TRITONBACKEND_Model;
typedef struct TRITONBACKEND_ModelInstance TRITONBACKEND_ModelInstance;
typedef struct TRITONBACKEND_Request TRITONBACKEND_Request;
typedef struct TRITONBACKEND_Response TRITONBACKEND_Response;
typedef struct TRITONBACKEND_Input TRITONBACKEND_Input;
typedef struct TRITONBACKEND_Output TRITONBACKEND_Output;

/* ---- numbers ----------------------------------------------------------------------- */

typedef enum {
    TRITONSERVER_TYPE_INVALID,
    TRITONSERVER_TYPE_BOOL,
    TRITONSERVER_TYPE_UINT8,
    TRITONSERVER_TYPE_INT8 = 6,
    TRITONSERVER_TYPE_INT32 = 8,
    TRITONSERVER_TYPE_INT64 = 9,
    TRITONSERVER_TYPE_FP16 = 10,
    TRITONSERVER_TYPE_FP32 = 11,
    TRITONSERVER_TYPE_FP64 = 12,
    TRITONSERVER_TYPE_BF16 = 14
} TRITONSERVER_DataType;

typedef enum {
    TRITONSERVER_MEMORY_CPU,
    TRITONSERVER_MEMORY_CPU_PINNED,
    TRITONSERVER_MEMORY_GPU
} TRITONSERVER_MemoryType;

typedef enum {
    TRITONSERVER_INSTANCEGROUPKIND_AUTO,
    TRITONSERVER_INSTANCEGROUPKIND_CPU,
    TRITONSERVER_INSTANCEGROUPKIND_GPU,
    TRITONSERVER_INSTANCEGROUPKIND_MODEL
} TRITONSERVER_InstanceGroupKind;

typedef enum {
    TRITONSERVER_LOG_INFO,
    TRITONSERVER_LOG_WARN,
    TRITONSERVER_LOG_ERROR,
    TRITONSERVER_LOG_VERBOSE
} TRITONSERVER_LogLevel;

typedef enum {
    TRITONSERVER_ERROR_UNKNOWN,
    TRITONSERVER_ERROR_INTERNAL,
    TRITONSERVER_ERROR_NOT_FOUND,
    TRITONSERVER_ERROR_INVALID_ARG,
    TRITONSERVER_ERROR_UNAVAILABLE,
    TRITONSERVER_ERROR_UNSUPPORTED,
    TRITONSERVER_ERROR_ALREADY_EXISTS,
    TRITONSERVER_ERROR_CANCELLED
} TRITONSERVER_Error_Code;

typedef enum {
    TRITONSERVER_PARAMETER_STRING,
    TRITONSERVER_PARAMETER_INT
} TRITONSERVER_ParameterType;
typedef enum { TRITONSERVER_METRIC_KIND_COUNTER } TRITONSERVER_MetricKind;
typedef enum { TRITONBACKEND_ARTIFACT_FILESYSTEM } TRITONBACKEND_ArtifactType;

enum {
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1,
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2,
    TRITONSERVER_REQUEST_RELEASE_ALL = 1,
    TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1
};

/* ---- the server's functions -------------------------------------------------------- */

TRITONSERVER_Error *TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char *text);
void TRITONSERVER_ErrorDelete(TRITONSERVER_Error *error);
TRITONSERVER_Error_Code TRITONSERVER_ErrorCode(TRITONSERVER_Error *error);
const char *TRITONSERVER_ErrorMessage(TRITONSERVER_Error *error);
TRITONSERVER_Error *TRITONSERVER_LogMessage(TRITONSERVER_LogLevel level, const char *file,
                                            int line, const char *text);
/* The caller deletes the message. */
TRITONSERVER_Error *TRITONSERVER_MessageNewFromSerializedJson(TRITONSERVER_Message **out,
                                                              const char *text,
                                                              size_t bytes);
TRITONSERVER_Error *TRITONSERVER_MessageDelete(TRITONSERVER_Message *message);
TRITONSERVER_Error *TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message *message,
                                                        const char **text, size_t *bytes);
/* The caller deletes them. */
TRITONSERVER_Error *TRITONSERVER_BufferAttributesNew(TRITONSERVER_BufferAttributes **out);
TRITONSERVER_Error *TRITONSERVER_BufferAttributesDelete(TRITONSERVER_BufferAttributes *b);
TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetMemoryType(TRITONSERVER_BufferAttributes *b,
                                           TRITONSERVER_MemoryType type);
TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetMemoryTypeId(TRITONSERVER_BufferAttributes *b,
                                             int64_t id);
TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetByteSize(TRITONSERVER_BufferAttributes *b, size_t bytes);
/* The caller deletes parameters, families and metrics; a family after its metrics. */
TRITONSERVER_Parameter *TRITONSERVER_ParameterNew(const char *name,
                                                  TRITONSERVER_ParameterType type,
                                                  const void *value);
void TRITONSERVER_ParameterDelete(TRITONSERVER_Parameter *parameter);
TRITONSERVER_Error *TRITONSERVER_MetricFamilyNew(TRITONSERVER_MetricFamily **out,
                                                 TRITONSERVER_MetricKind kind,
                                                 const char *name, const char *help);
TRITONSERVER_Error *TRITONSERVER_MetricFamilyDelete(TRITONSERVER_MetricFamily *family);
TRITONSERVER_Error *TRITONSERVER_MetricNew(TRITONSERVER_Metric **out,
                                           TRITONSERVER_MetricFamily *family,
                                           const TRITONSERVER_Parameter **labels,
                                           uint64_t n_labels);
TRITONSERVER_Error *TRITONSERVER_MetricDelete(TRITONSERVER_Metric *metric);
TRITONSERVER_Error *TRITONSERVER_MetricIncrement(TRITONSERVER_Metric *metric,
                                                 double value);

TRITONSERVER_Error *TRITONBACKEND_ApiVersion(uint32_t *major, uint32_t *minor);
/* Backend. The config stays the server's. */
TRITONSERVER_Error *TRITONBACKEND_BackendConfig(TRITONBACKEND_Backend *backend,
                                                TRITONSERVER_Message **out);
TRITONSERVER_Error *TRITONBACKEND_BackendState(TRITONBACKEND_Backend *backend,
                                               void **out);
TRITONSERVER_Error *TRITONBACKEND_BackendSetState(TRITONBACKEND_Backend *backend,
                                                  void *state);
TRITONSERVER_Error *TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
    TRITONBACKEND_BackendAttribute *attributes, TRITONSERVER_InstanceGroupKind kind,
    uint64_t count, const uint64_t *devices, uint64_t n_devices);
TRITONSERVER_Error *TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
    TRITONBACKEND_BackendAttribute *attributes, bool enabled);

/* Model. The caller deletes the config. */
TRITONSERVER_Error *TRITONBACKEND_ModelName(TRITONBACKEND_Model *model, const char **out);
TRITONSERVER_Error *TRITONBACKEND_ModelVersion(TRITONBACKEND_Model *model, uint64_t *out);
TRITONSERVER_Error *TRITONBACKEND_ModelRepository(TRITONBACKEND_Model *model,
                                                  TRITONBACKEND_ArtifactType *type,
                                                  const char **folder);
TRITONSERVER_Error *TRITONBACKEND_ModelConfig(TRITONBACKEND_Model *model,
                                              uint32_t version,
                                              TRITONSERVER_Message **out);
TRITONSERVER_Error *TRITONBACKEND_ModelAutoCompleteConfig(TRITONBACKEND_Model *model,
                                                          bool *out);
TRITONSERVER_Error *TRITONBACKEND_ModelSetConfig(TRITONBACKEND_Model *model,
                                                 uint32_t version,
                                                 TRITONSERVER_Message *config);
TRITONSERVER_Error *TRITONBACKEND_ModelBackend(TRITONBACKEND_Model *model,
                                               TRITONBACKEND_Backend **out);
TRITONSERVER_Error *TRITONBACKEND_ModelState(TRITONBACKEND_Model *model, void **out);
TRITONSERVER_Error *TRITONBACKEND_ModelSetState(TRITONBACKEND_Model *model, void *state);
/* The usage stays the caller's. */
TRITONSERVER_Error *
TRITONBACKEND_ModelReportMemoryUsage(TRITONBACKEND_Model *model,
                                     TRITONSERVER_BufferAttributes **usage, uint32_t n);

/* Instance. */
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceName(TRITONBACKEND_ModelInstance *instance,
                                                    const char **out);
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceKind(TRITONBACKEND_ModelInstance *instance,
                                                    TRITONSERVER_InstanceGroupKind *out);
TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceDeviceId(TRITONBACKEND_ModelInstance *instance, int32_t *out);
TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance *instance,
                                 TRITONBACKEND_Model **out);
TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance *instance, void **out);
TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceSetState(TRITONBACKEND_ModelInstance *instance, void *state);
TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReportMemoryUsage(TRITONBACKEND_ModelInstance *instance,
                                             TRITONSERVER_BufferAttributes **usage,
                                             uint32_t n);
/* Times are nanoseconds of the monotonic clock: execution begins, computing begins, ends,
 * execution ends. Of a request that is not released yet. */
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportStatistics(
    TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request, bool success,
    uint64_t begun, uint64_t computing, uint64_t computed, uint64_t ended);
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportBatchStatistics(
    TRITONBACKEND_ModelInstance *instance, uint64_t rows, uint64_t begun,
    uint64_t computing, uint64_t computed, uint64_t ended);

/* Request. */
TRITONSERVER_Error *TRITONBACKEND_RequestIsCancelled(TRITONBACKEND_Request *request,
                                                     bool *out);
TRITONSERVER_Error *TRITONBACKEND_RequestFlags(TRITONBACKEND_Request *request,
                                               uint32_t *out);
TRITONSERVER_Error *TRITONBACKEND_RequestInput(TRITONBACKEND_Request *request,
                                               const char *name,
                                               TRITONBACKEND_Input **out);
TRITONSERVER_Error *TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request *request,
                                                     uint32_t *out);
TRITONSERVER_Error *TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request *request,
                                                    uint32_t index, const char **out);
TRITONSERVER_Error *TRITONBACKEND_RequestRelease(TRITONBACKEND_Request *request,
                                                 uint32_t flags);
TRITONSERVER_Error *TRITONBACKEND_InputProperties(TRITONBACKEND_Input *input,
                                                  const char **name,
                                                  TRITONSERVER_DataType *type,
                                                  const int64_t **dims, uint32_t *rank,
                                                  uint64_t *bytes, uint32_t *buffers);
TRITONSERVER_Error *TRITONBACKEND_InputBuffer(TRITONBACKEND_Input *input, uint32_t index,
                                              const void **data, uint64_t *bytes,
                                              TRITONSERVER_MemoryType *type, int64_t *id);

/* Response. Sending hands it over; the error stays the caller's. */
TRITONSERVER_Error *TRITONBACKEND_ResponseNew(TRITONBACKEND_Response **out,
                                              TRITONBACKEND_Request *request);
TRITONSERVER_Error *TRITONBACKEND_ResponseDelete(TRITONBACKEND_Response *response);
TRITONSERVER_Error *TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response *response,
                                                 TRITONBACKEND_Output **out,
                                                 const char *name,
                                                 TRITONSERVER_DataType type,
                                                 const int64_t *dims, uint32_t rank);
TRITONSERVER_Error *TRITONBACKEND_ResponseSend(TRITONBACKEND_Response *response,
                                               uint32_t flags, TRITONSERVER_Error *error);
/* type and id: what is preferred, then what `data` is. */
TRITONSERVER_Error *TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output *output, void **data,
                                               uint64_t bytes,
                                               TRITONSERVER_MemoryType *type,
                                               int64_t *id);

/* ---- the backend's functions ------------------------------------------------------- */

#ifdef __cplusplus
#define TRITON_ENTRY
#else
#define TRITON_ENTRY __attribute__((visibility("default")))
#endif
TRITON_ENTRY TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend);
TRITON_ENTRY TRITONSERVER_Error *TRITONBACKEND_Finalize(TRITONBACKEND_Backend *backend);
TRITON_ENTRY TRITONSERVER_Error *
TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend *backend,
                                  TRITONBACKEND_BackendAttribute *attributes);
TRITON_ENTRY TRITONSERVER_Error *
TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model);
TRITON_ENTRY TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model);
TRITON_ENTRY TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance);
TRITON_ENTRY TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance);
TRITON_ENTRY TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request **requests, uint32_t n);
/* Asked for the health of a model, by servers from December 2025 on. */
TRITON_ENTRY TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReady(TRITONBACKEND_ModelInstance *instance);

#endif /* SERVING_TRITON_TRITON_ABI_H */
