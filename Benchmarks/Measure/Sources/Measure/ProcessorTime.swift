import Glibc

/// The processor time of this process, as reported by the operating system.
enum ProcessorTime {
    /// The processor time of all processors in seconds, including the kernel's for this process.
    static var seconds: Double {
        var usage = rusage()
        unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }

    private static func seconds(_ time: timeval) -> Double {
        Double(time.tv_sec) + Double(time.tv_usec) * 1e-6
    }
}
