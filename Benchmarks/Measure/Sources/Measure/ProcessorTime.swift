import Glibc

/// What the operating system says this process has used.
enum ProcessorTime {
    /// Seconds of all processors, its own code and the kernel's for it.
    static var seconds: Double {
        var usage = rusage()
        unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }

    private static func seconds(_ time: timeval) -> Double {
        Double(time.tv_sec) + Double(time.tv_usec) * 1e-6
    }
}
