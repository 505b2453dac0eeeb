import Dispatch
import Glibc
import Martlet

/// The samples of the article about building a downloader; compiled, never run.
enum DownloaderSamples {
    static func program(_ urls: [String]) async throws {
        let downloads = try await DownloadManager(
            session: HTTPSession(configuration: .background),
            directory: "/var/lib/app/downloads")
        await downloads.retryFailed()
        for url in urls {
            try await downloads.add(url, to: .directory("/data"), ifPresent: .existing)
        }
        let summary = try await downloads.allFinished
        for (id, error) in summary.failed { print(id, error) }
        await downloads.close()
    }

    static func bars(_ downloads: DownloadManager) async {
        for await total in downloads.progress {
            for download in downloads.all {
                let current = download.progress.current
                print(download.url, current.fractionCompleted ?? 0, current.bytesPerSecond)
            }
            print(total.completedByteCount, total.finishedCount, "of", total.count)
        }
    }

    static func log(_ downloads: DownloadManager) async {
        for await event in downloads.events {
            switch event {
            case .began(_, let url): print("started", url)
            case .finished(_, let result):
                print("finished", result.path, result.metrics?.duration ?? .zero)
            case .failed(_, let url, let error): print("failed", url, error)
            case .retrying(_, let url, let error, let delay):
                print("retrying", url, "in", delay, error)
            default: break
            }
        }
    }

    static func signals(_ downloads: DownloadManager) async throws {
        var sources: [any DispatchSourceSignal] = []
        for number in [SIGINT, SIGTERM] {
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .main)
            source.setEventHandler { Task { await downloads.close() } }
            source.activate()
            sources.append(source)
        }
        do {
            print(try await downloads.allFinished.finished.count)
        } catch is CancellationError {
            print("stopped; the next start continues")
        }
        await downloads.close()
    }

    static func limits(_ session: HTTPSession, _ downloads: DownloadManager, _ id: DownloadID) async throws {
        let limits = DownloadLimits(
            concurrentFiles: 4, perHost: 2, bandwidth: .bytesPerSecond(2_000_000))
        await downloads.setLimits(limits)
        try await downloads.setBandwidth(.bytesPerSecond(500_000), of: id)
        session.setBandwidthLimits(
            BandwidthLimits(total: BandwidthLimit(upload: .bytesPerSecond(100_000))))
    }

    static func digests(_ session: HTTPSession, _ downloads: DownloadManager) async throws {
        let digits = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
        try await downloads.add(
            "https://example.org/large.iso", to: "/data/large.iso",
            options: .init(checksum: .sha256(digits)))
    }

    static func hashed(_ session: HTTPSession) async throws {
        let digest = DigestSink(.sha256)
        try await session.stream("https://example.org/large.iso") { response, body in
            _ = try await body.tee(to: [digest])
        }
        print(await digest.hexadecimal ?? "incomplete")
    }

    static func failures(_ downloads: DownloadManager) async throws {
        do {
            try await downloads.allFinished.requireSuccess()
        } catch let error as HTTPError where error.code == .diskFull {
            print("the disk is full;", error.resumableByteCount ?? 0, "bytes are kept")
            await downloads.retryFailed()
        }
    }

    static func stored(_ session: HTTPSession) async throws {
        let stored = try await DownloadManager(
            session: session, directory: "/var/lib/app/downloads",
            limits: DownloadLimits(concurrentFiles: 0))
        for download in stored.all { print(download.id, download.state, download.url) }
        for download in stored.all { await download.cancel() }
        try await stored.removeFinished()
        await stored.close()
    }
}
