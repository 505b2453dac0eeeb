import Foundation
import Glibc

/// The memory of another process, from the kernel's own account.
enum ResidentMemory {
    /// The most that the process ever held itself, in bytes; `nil` once it has ended. Pages of its files do not count:
    /// of a debug build, code alone is 28 MiB, grows with every command, and says nothing of what a transfer takes.
    static func peak(of process: pid_t) -> Int? {
        let status = OutputFile.contents(of: "/proc/\(process)/status")
        guard let highest = byteCount("VmHWM:", in: status), let files = byteCount("RssFile:", in: status)
        else {
            return nil
        }
        // Pages of files come and seldom go: those of now are the best word on those of then.
        return highest - files
    }

    private static func byteCount(_ name: String, in status: String) -> Int? {
        guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix(name) }) else {
            return nil
        }
        return line.split(separator: " ").dropFirst().first.flatMap { Int($0) }.map { $0 * 1_024 }
    }
}
