import CSoak
import Glibc
import Martlet

/// The kernel's figures for this process.
enum ProcessFigures {
    /// The resident memory in bytes.
    static var residentBytes: Int { kibibytes("VmRSS:") * 1024 }
    /// The maximum resident memory at any time, in bytes.
    static var peakResidentBytes: Int { kibibytes("VmHWM:") * 1024 }
    /// The allocated memory that was not freed, in bytes; the allocator retains the rest of the resident memory.
    static var allocatedBytes: Int { Int(soak_allocated()) }
    /// The number of threads.
    static var threads: Int { kibibytes("Threads:") }
    /// The number of processors that this process can use.
    static var processors: Int { Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

    /// The number of open descriptors.
    static var descriptors: Int {
        guard let directory = unsafe opendir("/proc/self/fd") else { return -1 }
        defer { unsafe closedir(directory) }
        var count = 0
        while unsafe readdir(directory) != nil { count += 1 }
        // The count excludes `.`, `..` and the descriptor of the directory.
        return count - 3
    }

    /// The processor time of this process on all processors, including the kernel's for it.
    static var processorTime: Duration {
        var used = timespec()
        unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used)
        return .seconds(used.tv_sec) + .nanoseconds(used.tv_nsec)
    }

    /// Returns free memory that the allocator retains to the system, so that only memory in use stays resident.
    static func trimMemory() {
        soak_trim_memory()
    }

    private static func kibibytes(_ key: String) -> Int {
        do {
            let file = try FileDescriptor.open(
                FilePath("/proc/self/status"), .readOnly, options: .closeOnExec)
            let text = try file.closeAfter {
                var bytes = [UInt8](repeating: 0, count: 1 << 13)
                let count = unsafe try bytes.withUnsafeMutableBytes { unsafe try file.read(into: $0) }
                return String(decoding: bytes.prefix(count), as: UTF8.self)
            }
            for line in text.split(separator: "\n") where line.hasPrefix(key) {
                return line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap {
                    Int($0)
                } ?? -1
            }
            return -1
        } catch {
            return -1
        }
    }
}
