import CSoak
import Glibc
import Martlet

/// What the kernel accounts for this process.
enum ProcessFigures {
    /// Resident memory, in bytes.
    static var residentBytes: Int { kibibytes("VmRSS:") * 1024 }
    /// The most that was resident at any time, in bytes.
    static var peakResidentBytes: Int { kibibytes("VmHWM:") * 1024 }
    /// What is allocated and not freed, in bytes; what is resident beyond it, the allocator keeps.
    static var allocatedBytes: Int { Int(soak_allocated()) }
    /// Threads.
    static var threads: Int { kibibytes("Threads:") }
    /// Processors that this process may use.
    static var processors: Int { Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

    /// Open descriptors.
    static var descriptors: Int {
        guard let directory = unsafe opendir("/proc/self/fd") else { return -1 }
        defer { unsafe closedir(directory) }
        var count = 0
        while unsafe readdir(directory) != nil { count += 1 }
        // Without `.`, `..` and the descriptor of the directory.
        return count - 3
    }

    /// What this process has used of all processors, its own code and the kernel's for it.
    static var processorTime: Duration {
        var used = timespec()
        unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used)
        return .seconds(used.tv_sec) + .nanoseconds(used.tv_nsec)
    }

    /// Gives memory that the allocator keeps back to the system, so that what stays resident is what is in use.
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
