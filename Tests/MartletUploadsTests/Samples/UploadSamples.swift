import MartletCore
import MartletTesting
import MartletUploads

/// The compiled samples of the documentation pages on resumable uploads. A test compares the two texts.
enum UploadSamples {
    static func once(_ session: HTTPSession) async throws {
        let result = try await session.uploadResumably(
            "/data/movie.mp4", to: "https://example.org/files"
        ) { progress in
            print(progress.fractionCompleted)
        }
        print(result.statusCode, result.headers[.location] ?? "")
    }

    static func queued(_ session: HTTPSession) async throws {
        let uploads = try await UploadManager(
            session: session, directory: "/var/lib/app/uploads")
        let id = try await uploads.add(
            "/data/movie.mp4", to: "https://example.org/files",
            options: UploadOptions(protocol: .tus, chunkSize: .mebibytes(16)))
        for await state in await uploads.states(of: id) {
            print(state)
            if state.hasEnded { break }
        }
        await uploads.close()
    }

    static func prepared(_ session: HTTPSession, _ tokens: some TokenSource) async throws {
        let uploads = try await UploadManager(
            session: session, directory: "/var/lib/app/uploads"
        ) { headers, url in
            guard url.host == "example.org" else { return }
            headers[.authorization] = "Bearer \(try await tokens.current())"
        }
        try await uploads.resumeAll()
    }

    /// A source of tokens, such as a keychain.
    protocol TokenSource: Sendable {
        func current() async throws -> String
    }

    static func tested(_ session: HTTPSession) async throws {
        let store = ResumableUploadStore()
        store.inject(.cut(afterBytes: 1000), into: .patch)
        let handler = OriginHandler.resumableUploads(store)
        try await TestOrigin.withOrigin(.plain, handler: handler) { origin in
            try await session.uploadResumably("/data/movie.mp4", to: origin.url("/files"))
        }
        print(store.completed.map(\.bytes.count), store.receivedByteCount)
    }
}
