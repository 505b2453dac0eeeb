import Martlet

/// The samples of the article about downloads and of the README; compiled, never run.
enum DownloadSamples {
    static func verified(_ session: HTTPSession, _ digits: String) async throws {
        let result = try await session.download(
            "https://example.org/model.gguf", to: "/models/model.gguf",
            options: .init(segments: 8, checksum: .sha256(digits), collision: .overwrite)
        ) { progress in
            print(progress.completedByteCount, progress.timeLeft ?? .zero)
        }
        print(result.path, result.byteCount, "resumed:", result.resumedByteCount)
    }

    static func held(_ session: HTTPSession, _ freshlySignedURL: String) async throws {
        let download = try session.startDownload(
            "https://example.org/movie.mp4?signature=1", to: .directory("/data"))
        await download.pause()
        try await download.resume(from: freshlySignedURL)
        for await event in download.events { print(event) }
        print(try await download.value.path)
    }

    static func together(_ downloads: DownloadManager) async {
        for await total in downloads.progress {
            print(total.fractionCompleted ?? 0, total.finishedCount, "of", total.count)
        }
    }

    static func many(_ session: HTTPSession) async throws {
        let downloads = try await DownloadManager(
            session: session, directory: "/var/lib/app/downloads")
        let id = try await downloads.add(
            "https://example.org/large.iso", to: "/data/large.iso", priority: .high)
        for await state in downloads.states(of: id) {
            print(state)
            if state.hasEnded { break }
        }
        let summary = try await downloads.allFinished
        for (id, error) in summary.failed { print(id, error) }
        await downloads.close()
    }

    static func ofHost(_ api: HTTPHost) async throws {
        let model = try api.startDownload("models/m.gguf", to: .directory("/models"))
        print(try await model.value.path)
    }

    static func addedOfHost(_ api: HTTPHost) async throws {
        let downloads = try await DownloadManager(
            session: api.session, directory: "/var/lib/app/downloads"
        ) { fields, url in
            api.addHeaders(to: &fields, for: url)
        }
        try await downloads.add("models/m.gguf", of: api, to: .file("/models/m.gguf"))
    }
}
