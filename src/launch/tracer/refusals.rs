//! Errors of CUPTI and of the CUDA driver that leave nothing to record: the cause, and what to do about it.

/// An error, explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub code: u32,
    pub name: &'static str,
    /// The cause, as a clause.
    pub why: &'static str,
    /// Command or action that fixes it.
    pub fix: &'static str,
}

impl Refusal {
    /// The cause with the error's name, which documentation and forums use.
    pub fn to_clause(&self) -> String {
        format!("{} ({})", self.why, self.name)
    }
}

const fn refusal(code: u32, name: &'static str, why: &'static str, fix: &'static str) -> Refusal {
    Refusal { code, name, why, fix }
}

/// Advice for a libcupti that the driver does not accept.
pub const OTHER_CUPTI: &str = "record with a libcupti of the driver's CUDA release, which `nvidia-smi` shows: `warpscope trace --cupti FILE` \
     (`pip install nvidia-cuda-cupti-cu12` has one for CUDA 12)";
/// Advice for a libcupti that is damaged or missing.
pub const NEW_CUPTI: &str = "install one: `pip install --force-reinstall nvidia-cuda-cupti` (nvidia-cuda-cupti-cu12 for a driver of CUDA 12), or name one: \
     `warpscope trace --cupti FILE`";

/// Results of cuptiSubscribe and cuptiActivityEnable (`cupti_result.h` of CUDA 13.5).
static CUPTI: &[Refusal] = &[
    refusal(
        8,
        "CUPTI_ERROR_OUT_OF_MEMORY",
        "CUPTI got no memory",
        "free memory of the host, or raise the limit of the program (`ulimit -v`), the container or the job",
    ),
    refusal(
        15,
        "CUPTI_ERROR_NOT_INITIALIZED",
        "libcupti cannot connect to the CUDA driver, which is older than this libcupti or could not be initialized",
        OTHER_CUPTI,
    ),
    refusal(
        23,
        "CUPTI_ERROR_DISABLED",
        "CUPTI is disabled, because another profiler is active",
        "run the program without the other profiler or debugger",
    ),
    refusal(
        26,
        "CUPTI_ERROR_HARDWARE_BUSY",
        "another tool uses the GPU's performance monitors",
        "pause DCGM with `dcgmi profile --pause` (afterwards --resume), or wait for the other profiler to end",
    ),
    refusal(27, "CUPTI_ERROR_NOT_SUPPORTED", "this GPU or system does not support it", OTHER_CUPTI),
    refusal(
        33,
        "CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED",
        "CUPTI does not support this virtual GPU",
        "record on a GPU that is passed through to the virtual machine, or on a vGPU type that supports profiling",
    ),
    refusal(
        35,
        "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
        "this user may not profile: the driver or the system restricts it to administrators",
        "run it as root (in a container with `--cap-add=SYS_ADMIN`), or have an administrator set `options nvidia \
         NVreg_RestrictProfilingToAdminUsers=0` and reload the driver",
    ),
    refusal(
        36,
        "CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED",
        "the program uses CUPTI's older profiling API (events and metrics)",
        "run it without that profiler",
    ),
    refusal(
        38,
        "CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED",
        "CUPTI's older profiling API is not supported on this GPU",
        "record with a newer libcupti: `warpscope trace --cupti FILE`",
    ),
    refusal(
        39,
        "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
        "another profiler (nsys, ncu, torch.profiler) already uses CUPTI in this process, or a debugger (cuda-gdb) does",
        "run the program without it, or record with that profiler alone: `warpscope run --tool nsys -- PROGRAM`",
    ),
    refusal(
        40,
        "CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES",
        "the hypervisor does not allow profiling on this virtual GPU",
        "have its administrator set the vGPU plugin parameter `enable_profiling=1` and start the virtual machine again",
    ),
    refusal(
        41,
        "CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED",
        "the GPU is in confidential computing mode, which does not allow tracing",
        "have the host's administrator set its devtools mode: `nvidia_gpu_tools.py --set-cc-mode=devtools --reset-after-cc-mode-switch`",
    ),
    refusal(
        42,
        "CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED",
        "CUPTI does not support mining processors (CMP)",
        "record on another GPU: `CUDA_VISIBLE_DEVICES=N`",
    ),
    refusal(
        43,
        "CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED",
        "this libcupti does not support MIG instances",
        "record with a newer libcupti (`warpscope trace --cupti FILE`), or on a whole GPU: `sudo nvidia-smi -i N -mig 0`",
    ),
    refusal(
        44,
        "CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED",
        "CUPTI does not support GPUs that are joined by SLI",
        "turn SLI off: `sudo nvidia-xconfig --sli=off`, and start the X server again",
    ),
    refusal(
        45,
        "CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED",
        "CUPTI does not support this GPU under WSL",
        "update WSL and the NVIDIA driver of Windows (`wsl --update`), or record on Linux itself",
    ),
    refusal(999, "CUPTI_ERROR_UNKNOWN", "CUPTI failed and does not say why", OTHER_CUPTI),
];

/// Results of cuInit (`cuda.h` of CUDA 13).
static CUDA: &[Refusal] = &[
    refusal(
        2,
        "CUDA_ERROR_OUT_OF_MEMORY",
        "no memory is left for CUDA",
        "`nvidia-smi` shows which processes hold the GPU's memory: end them",
    ),
    refusal(
        3,
        "CUDA_ERROR_NOT_INITIALIZED",
        "CUDA could not be initialized, as in a child of fork whose parent had used CUDA",
        "start children with spawn, such as with `multiprocessing.set_start_method(\"spawn\")`",
    ),
    refusal(
        34,
        "CUDA_ERROR_STUB_LIBRARY",
        "the libcuda.so.1 that was loaded is the toolkit's stub, which has no driver in it",
        "remove folders called `stubs` from LD_LIBRARY_PATH",
    ),
    refusal(
        46,
        "CUDA_ERROR_DEVICE_UNAVAILABLE",
        "the GPU is in use by another process in exclusive mode, or its mode prohibits computing",
        "`sudo nvidia-smi -c DEFAULT`",
    ),
    refusal(
        100,
        "CUDA_ERROR_NO_DEVICE",
        "CUDA finds no GPU: there is none, it is not in the container, or CUDA_VISIBLE_DEVICES hides it",
        "`nvidia-smi -L` lists the GPUs; unset CUDA_VISIBLE_DEVICES, or start the container with `--gpus all`",
    ),
    refusal(
        101,
        "CUDA_ERROR_INVALID_DEVICE",
        "CUDA_VISIBLE_DEVICES names a GPU or a MIG instance that is not there",
        "`nvidia-smi -L` lists them; unset CUDA_VISIBLE_DEVICES, or name one of these",
    ),
    refusal(
        102,
        "CUDA_ERROR_DEVICE_NOT_LICENSED",
        "the virtual GPU has no license",
        "`nvidia-smi -q | grep -i license` shows its state; `sudo systemctl restart nvidia-gridd` asks for one again",
    ),
    refusal(
        214,
        "CUDA_ERROR_ECC_UNCORRECTABLE",
        "the GPU's memory has an uncorrectable error",
        "reset it when nobody uses it: `sudo nvidia-smi -r -i N`",
    ),
    refusal(
        304,
        "CUDA_ERROR_OPERATING_SYSTEM",
        "a system call of the driver failed, often because /dev/nvidia-uvm is missing or may not be opened",
        "`sudo nvidia-modprobe -u -c=0` creates the device; in a container start it with `--gpus all`",
    ),
    refusal(
        800,
        "CUDA_ERROR_NOT_PERMITTED",
        "this user may not use the GPU",
        "`ls -l /dev/nvidia*` shows who may: join that group, or start the container with `--gpus all`",
    ),
    refusal(
        802,
        "CUDA_ERROR_SYSTEM_NOT_READY",
        "the system is not ready: on a machine with NVSwitch the fabric manager does not run, or is of another version than the driver",
        "`sudo systemctl restart nvidia-fabricmanager`",
    ),
    refusal(
        803,
        "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        "libcuda.so.1 and the kernel's module are of different driver versions, as after an update",
        "reboot, or load the module again: `sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo modprobe nvidia`",
    ),
    refusal(
        804,
        "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        "the libcuda.so.1 of a cuda-compat package was loaded, which this GPU does not support",
        "take the compat folder out of LD_LIBRARY_PATH, or use an image of the driver's CUDA release",
    ),
    refusal(
        805,
        "CUDA_ERROR_MPS_CONNECTION_FAILED",
        "the program cannot connect to the MPS daemon",
        "start it with the same CUDA_MPS_PIPE_DIRECTORY: `nvidia-cuda-mps-control -d`",
    ),
    refusal(
        806,
        "CUDA_ERROR_MPS_RPC_FAILURE",
        "the MPS server does not answer",
        "start MPS again: `echo quit | nvidia-cuda-mps-control; nvidia-cuda-mps-control -d`",
    ),
    refusal(
        807,
        "CUDA_ERROR_MPS_SERVER_NOT_READY",
        "the MPS server is starting, or recovers from a client's fault",
        "run it again in a few seconds; `echo get_server_list | nvidia-cuda-mps-control` shows the servers",
    ),
    refusal(
        808,
        "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED",
        "the MPS server has as many clients as it can have",
        "end some of them: `echo ps | nvidia-cuda-mps-control` lists them",
    ),
    refusal(
        809,
        "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED",
        "the MPS server has no connection left",
        "run fewer clients, or set a smaller CUDA_DEVICE_MAX_CONNECTIONS",
    ),
    refusal(
        999,
        "CUDA_ERROR_UNKNOWN",
        "the driver failed and does not say why, often because its module nvidia_uvm is in a bad state, as after suspending the machine",
        "load it again: `sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm`; `sudo dmesg | grep -i nvrm` shows the driver's messages",
    ),
];

/// Results of calls that launch kernels or load their code.
static LAUNCHES: &[Refusal] = &[
    refusal(
        2,
        "CUDA_ERROR_OUT_OF_MEMORY",
        "no memory was left on the GPU",
        "`nvidia-smi` shows which processes hold it: end them, or make the problem smaller",
    ),
    refusal(
        200,
        "CUDA_ERROR_INVALID_IMAGE",
        "the program's code for the GPU is damaged, or of a kind that the driver does not know",
        "compile it for this GPU, such as with `nvcc -arch=native`",
    ),
    refusal(
        209,
        "CUDA_ERROR_NO_BINARY_FOR_GPU",
        "the program has no code for this GPU",
        "compile it for this GPU, such as with `nvcc -arch=native`, or install a build of the framework that supports it",
    ),
    refusal(
        218,
        "CUDA_ERROR_INVALID_PTX",
        "the driver cannot compile the program's PTX",
        "compile the program for this GPU, such as with `nvcc -arch=native`",
    ),
    refusal(
        222,
        "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        "the program's PTX is of a newer CUDA than the driver",
        "update the driver, or compile the program for this GPU (`nvcc -arch=native`)",
    ),
    refusal(
        700,
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        "a kernel accessed memory that is not its own",
        "`compute-sanitizer PROGRAM` names the line",
    ),
    refusal(
        701,
        "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
        "the launch asks for more registers or threads than an SM has",
        "launch fewer threads per block, or limit the registers (`nvcc -maxrregcount=N`)",
    ),
    refusal(719, "CUDA_ERROR_LAUNCH_FAILED", "a kernel failed while it ran", "`compute-sanitizer PROGRAM` names the line"),
];

/// Explains a result of a call that launches a kernel or loads code.
pub fn explain_launch_error(code: u32) -> Option<&'static Refusal> {
    LAUNCHES.iter().find(|r| r.code == code)
}

/// Explains a result of cuptiSubscribe or cuptiActivityEnable, if it is one that is known to occur there.
pub fn explain_cupti_error(code: u32) -> Option<&'static Refusal> {
    CUPTI.iter().find(|r| r.code == code)
}

/// Explains a result of cuInit.
pub fn explain_cuda_error(code: u32) -> Option<&'static Refusal> {
    CUDA.iter().find(|r| r.code == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_has_one_cause_and_one_remedy() {
        for all in [CUPTI, CUDA, LAUNCHES] {
            for (i, one) in all.iter().enumerate() {
                assert!(all[..i].iter().all(|other| other.code < one.code && other.name != one.name), "{}", one.name);
                assert!(!one.why.ends_with('.') && !one.fix.ends_with('.') && !one.why.contains(';'), "{}", one.name);
            }
        }
        assert_eq!(explain_cupti_error(41).map(|r| r.name), Some("CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED"));
        assert_eq!((explain_cuda_error(0), explain_cupti_error(0)), (None, None));
        assert!(explain_cuda_error(100).is_some_and(|r| r.to_clause().ends_with("hides it (CUDA_ERROR_NO_DEVICE)")));
    }
}
