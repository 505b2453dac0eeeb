import Foundation
import Martlet

/// A bar for each running download, redrawn in place on a terminal.
struct ProgressBars {
    /// The number of columns of the terminal.
    let width: Int

    private let interval = Duration.milliseconds(200)

    /// Shows the downloads until their manager is closed.
    func show(_ downloads: DownloadManager) async {
        let events = downloads.events
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await redraw(downloads) }
            // Lines of ended downloads stay above the bars.
            for await event in events where event.endsDownload {
                if let line = event.line(in: downloads) { write("\r\u{1B}[J\(line)\n") }
            }
            group.cancelAll()
        }
        write("\r\u{1B}[J")
    }

    private func redraw(_ downloads: DownloadManager) async {
        while !Task.isCancelled {
            var lines = downloads.all.compactMap { download -> String? in
                guard download.state == .running else { return nil }
                let progress = download.progress.current
                return ProgressBars.line(
                    download.name, progress.completedByteCount, progress.fractionCompleted,
                    rate: progress.bytesPerSecond, timeLeft: progress.timeLeft, width: width)
            }
            let total = downloads.progress.current
            if total.count > 1 {
                lines.append(
                    ProgressBars.line(
                        "\(total.finishedCount) of \(total.count) files", total.completedByteCount,
                        total.fractionCompleted, rate: total.bytesPerSecond, width: width))
            }
            // The cursor returns to the first bar, so that the next text replaces all bars.
            let back = lines.count > 1 ? "\u{1B}[\(lines.count - 1)A" : ""
            write("\r\u{1B}[J" + lines.joined(separator: "\n") + "\r" + back)
            try? await Task.sleep(for: interval)
        }
    }

    /// Returns a line such as `movie.mp4  [######......]  50 %  1.5 MB/s  0:12`.
    static func line(
        _ name: String, _ byteCount: UInt64, _ fraction: Double?, rate: Double, timeLeft: Duration? = nil,
        width: Int
    ) -> String {
        let columns = max(20, width - 1)
        let rate = rate.formatted(as: "B/s")
        guard let fraction else {
            let size = Double(byteCount).formatted(as: "B")
            return String("\(name)  \(size)  \(rate)".prefix(columns))
        }
        var facts = "\(Int(fraction * 100)) %".leftPadded(to: 5) + rate.leftPadded(to: 12)
        if let timeLeft { facts += timeLeft.formattedAsClock.leftPadded(to: 8) }
        let nameWidth = min(24, columns / 3)
        let title = String(name.prefix(nameWidth)).rightPadded(to: nameWidth)
        let barWidth = columns - nameWidth - facts.count - 4
        guard barWidth >= 4 else { return String((title + facts).prefix(columns)) }
        let filled = min(barWidth, Int(fraction * Double(barWidth)))
        let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: barWidth - filled)
        return "\(title) [\(bar)] \(facts)"
    }

    private func write(_ text: String) { FileHandle.standardError.write(Data(text.utf8)) }
}

extension Download {
    /// The name of the file, or the last component of the URL until the server has proposed one.
    var name: String {
        path?.lastComponent?.string ?? url.path.split(separator: "/").last.map(String.init) ?? "download"
    }
}

extension DownloadManagerEvent {
    /// Whether the event is the end of a download.
    var endsDownload: Bool {
        switch self {
        case .finished, .failed: true
        default: false
        }
    }

    /// Returns a line about the event; `nil` if the event needs none.
    func line(in downloads: DownloadManager) -> String? {
        switch self {
        case .began(_, let url): "started \(url)"
        case .finished(_, let result):
            "finished \(result.path) (\(result.byteCount) bytes, \(result.resumedByteCount) of them resumed)"
        case .failed(_, let url, let error): "failed \(url): \(error)"
        case .retrying(_, let url, let error, let delay): "retrying \(url) in \(delay): \(error)"
        case .fileFailed(_, let error): "the queue could not be written: \(error)"
        case .itemQuarantined(let path, let reason), .itemSkipped(let path, let reason):
            "ignored \(path): \(reason)"
        default: nil
        }
    }
}
