import MartletStorage
package import MartletTransport

/// A moment on the clock that counts from the start of the computer. No clock step moves it, and it holds in all processes
/// until the computer is started again.
package struct BootDeadline: Hashable, Sendable {
    /// The start of the computer that it counts from, as the kernel names it.
    package var boot: String
    /// Milliseconds after that start.
    package var milliseconds: Int64

    /// A moment, so many milliseconds after a start of the computer.
    package init(boot: String, milliseconds: Int64) {
        self.boot = boot
        self.milliseconds = milliseconds
    }

    /// A moment; `nil` where the start of the computer has no name.
    package init?(_ time: MonotonicTime, boot: String?) {
        guard let boot else { return nil }
        self.init(boot: boot, milliseconds: Int64(time.nanoseconds / 1_000_000))
    }

    /// The moment on the clock of this process.
    package var time: MonotonicTime {
        MonotonicTime(nanoseconds: 0).advanced(by: .milliseconds(max(0, milliseconds)))
    }

    /// The name of this start of the computer; `nil` where the kernel does not tell it.
    package static let currentBoot: String? = {
        let path = "/proc/sys/kernel/random/boot_id"
        // Its length is told as 0.
        guard let bytes = try? FileReader(path: path).read(at: 0, limit: 256) else { return nil }
        let name = String(decoding: bytes, as: UTF8.self).filter { !$0.isWhitespace }
        return name.isEmpty ? nil : name
    }()
}
