import Dispatch
import Foundation

/// Waits for one of these signals, which no longer end the process. Returns `nil` when the task is cancelled.
func firstSignal(of numbers: [Int32]) async -> Int32? {
    let (received, continuation) = AsyncStream<Int32>.makeStream()
    let sources = numbers.map { number in
        // The default action would end the process before the source is called.
        signal(number, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: number)
        source.setEventHandler { continuation.yield(number) }
        source.activate()
        return source
    }
    defer { for source in sources { source.cancel() } }
    return await received.first { _ in true }
}

/// Returns the number of columns of a terminal; `nil` if the descriptor is not a terminal.
func terminalWidth(of descriptor: Int32) -> Int? {
    guard isatty(descriptor) == 1 else { return nil }
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
    return Int(size.ws_col)
}

func printError(_ text: String) { FileHandle.standardError.write(Data("\(text)\n".utf8)) }

extension Double {
    /// Formats a number of bytes with at most three digits, such as `1.5 MB/s`.
    func formatted(as unit: String) -> String {
        var value = self
        for prefix in ["", "k", "M", "G"] {
            if value < 999.5 {
                return String(format: value < 10 && !prefix.isEmpty ? "%.1f" : "%.0f", value)
                    + " \(prefix)\(unit)"
            }
            value /= 1000
        }
        return String(format: "%.0f T", value) + unit
    }
}

extension Duration {
    /// Minutes and seconds, such as `1:05`.
    var formattedAsClock: String {
        let seconds = components.seconds
        return "\(seconds / 60):" + "\(seconds % 60)".leftPadded(to: 2, with: "0")
    }
}

extension String {
    func leftPadded(to width: Int, with filler: Character = " ") -> String {
        String(repeating: filler, count: max(0, width - count)) + self
    }

    func rightPadded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}
