import ArgumentParser
import Foundation
import Martlet

/// Downloads several files concurrently. Incomplete downloads resume in the next run.
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
            limits: DownloadLimits(concurrentFiles: max(1, jobs), perHost: jobs))
        // The display ends when the manager is closed.
        async let display: Void = display(of: downloads)
        let summary: DownloadSummary?
        do {
            try await enqueue(in: downloads)
            summary = try await waitUntilFinishedOrInterrupted(downloads)
            // The records of complete files are no longer needed; failed downloads remain.
            if summary != nil { try await downloads.removeFinished() }
        } catch {
            await downloads.close()
            throw error
        }
        await downloads.close()
        await display
        guard let summary else {
            printError("paused; to continue: downloader --dir \(dir)")
            throw ExitCode(130)
        }
        if !summary.failed.isEmpty { throw ExitCode.failure }
    }

    /// Adds the URLs that are not in the queue yet, and retries the downloads that failed in an earlier run.
    private func enqueue(in downloads: DownloadManager) async throws {
        await downloads.retryFailed()
        for url in urls {
            try await downloads.add(
                url, to: .directory(FilePath(dir)), options: DownloadOptions(collision: .rename),
                ifPresent: .existing)
        }
    }

    /// Returns the results; `nil` if the user interrupted the program before all downloads had ended.
    private func waitUntilFinishedOrInterrupted(_ downloads: DownloadManager) async throws -> DownloadSummary? {
        try await withThrowingTaskGroup(of: DownloadSummary?.self) { group in
            group.addTask { try await downloads.allFinished }
            group.addTask {
                _ = await firstSignal(of: [SIGINT, SIGTERM])
                return nil
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
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
