import Foundation
import Glibc

/// The memory of another process, as the kernel reports it.
enum ResidentMemory {
    /// The peak memory of the process in bytes; `nil` once it has ended. Pages of files do not count: in a debug build
    /// the code takes 28 MiB, grows with every command, and has nothing to do with a transfer.
    static func peak(of process: pid_t) -> Int? {
        let status = OutputFile.contents(of: "/proc/\(process)/status")
        guard let highest = byteCount("VmHWM:", in: status), let files = byteCount("RssFile:", in: status)
        else {
            return nil
        }
        // File pages are rarely released, so their current number is the best estimate of the number at the peak.
        return highest - files
    }

    private static func byteCount(_ name: String, in status: String) -> Int? {
        guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix(name) }) else {
            return nil
        }
        return line.split(separator: " ").dropFirst().first.flatMap { Int($0) }.map { $0 * 1_024 }
    }
}
