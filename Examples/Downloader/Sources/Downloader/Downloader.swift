import ArgumentParser
import Foundation
import Martlet

/// Downloads files, several at once. What is not complete when the program ends is completed by the next run.
@main
struct Downloader: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "downloader",
        abstract: "Download files into a directory.",
        discussion:
            "Ctrl-C pauses. Run the program again with the same --dir to continue; it needs no URLs then.")

    @Argument(help: "The URLs of the files.")
    var urls: [String] = []

    @Option(help: "The directory of the files. It is created if necessary.")
    var dir = "."

    @Option(help: "The maximum number of concurrent downloads.")
    var jobs = 3

    func run() async throws {
        try FileManager.default.createDirectory(atPath: dir, withIntermediateDirectories: true)
        let downloads = try await DownloadManager(
            session: HTTPSession(configuration: .background),
            directory: "\(dir)/.downloader",
            limits: DownloadLimits(concurrentFiles: jobs, perHost: jobs))
        // The display ends when the manager is closed.
        async let display: Void = display(of: downloads)
        let wasInterrupted: Bool
        do {
            try await enqueue(in: downloads)
            wasInterrupted = try await waitUntilFinishedOrInterrupted(downloads)
        } catch {
            await downloads.close()
            throw error
        }
        let failedCount = wasInterrupted ? 0 : try await removeRecords(of: downloads)
        await downloads.close()
        await display
        if wasInterrupted {
            printError("paused; to continue: downloader --dir \(dir)")
            throw ExitCode(130)
        }
        if failedCount > 0 { throw ExitCode.failure }
    }

    /// Adds the URLs that are not in the queue yet, and retries the downloads that failed in an earlier run.
    private func enqueue(in downloads: DownloadManager) async throws {
        var queuedURLs: Set<HTTPURL> = []
        for download in downloads.downloads.compactMap(downloads.download) {
            queuedURLs.insert(download.url)
            if case .failed = download.state { try await download.resume() }
        }
        for url in urls where try queuedURLs.insert(HTTPURL(url)).inserted {
            try await downloads.add(
                url, to: .directory(FilePath(dir)), options: DownloadOptions(collision: .rename))
        }
    }

    /// Returns whether the user interrupted the program before all downloads had ended.
    private func waitUntilFinishedOrInterrupted(_ downloads: DownloadManager) async throws -> Bool {
        try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                try await downloads.allFinished
                return false
            }
            group.addTask { await firstSignal(of: [SIGINT, SIGTERM]) != nil }
            defer { group.cancelAll() }
            return try await group.next() ?? false
        }
    }

    /// Removes the records of complete files from the queue, and returns the number of failed downloads, which remain.
    private func removeRecords(of downloads: DownloadManager) async throws -> Int {
        var failedCount = 0
        for id in downloads.downloads {
            switch downloads.download(id)?.state {
            case .finished: try await downloads.remove(id)
            case .failed: failedCount += 1
            default: break
            }
        }
        return failedCount
    }

    private func display(of downloads: DownloadManager) async {
        if let width = terminalWidth(of: STDERR_FILENO) {
            await ProgressBars(width: width).show(downloads)
        } else {
            for await event in downloads.events {
                if let line = event.line(in: downloads) { printError(line) }
            }
        }
    }
}
