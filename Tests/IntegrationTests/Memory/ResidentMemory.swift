import Foundation
import Glibc

/// The memory of another process, from the kernel's own account.
enum ResidentMemory {
    /// The most that the process ever had resident, in bytes; `nil` once it has ended.
    static func peak(of process: pid_t) -> Int? {
        let status = OutputFile.contents(of: "/proc/\(process)/status")
        guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmHWM:") }) else {
            return nil
        }
        return line.split(separator: " ").dropFirst().first.flatMap { Int($0) }.map { $0 * 1_024 }
    }
}
