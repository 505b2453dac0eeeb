import Foundation
import MartletCore
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletUploads

@Suite("Transfers of uploads")
struct UploadTransferTests {
    private static let sizes = [0, 1, 100_000, 1 << 20 + 1]

    @Test("A file arrives by each protocol", arguments: UploadProtocol.allCases, sizes)
    func arrives(given: UploadProtocol, size: Int) async throws {
        for method in [HTTPRequest.Method.post, .put] {
            try await UploadScene.with(size) { scene in
                let result = try await scene.upload(given, method: method)
                #expect((200..<300).contains(result.statusCode))
                #expect(!result.isResponseLost)
                #expect(scene.store.completed.map(\.bytes) == [scene.bytes])
                #expect(scene.store.uploads.count == 1)
                let upload = try #require(scene.store.uploads.first)
                #expect(upload.method == (given == .tus ? .post : method))
                switch given {
                case .tus: #expect(upload.kind == .tus)
                case .plain: #expect(upload.kind == .plain)
                case .automatic, .ietf: #expect(upload.kind == .ietf)
                }
            }
        }
    }

    @Test("The protocol is that of the server")
    func discovery() async throws {
        for (kinds, kind) in [([.plain, .tus], .tus), ([.plain], .plain)]
            as [(Set<ResumableUploadStore.Kind>, ResumableUploadStore.Kind)]
        {
            try await UploadScene.with(5, store: ResumableUploadStore(supporting: kinds)) { scene in
                try await scene.upload(.automatic)
                #expect(scene.store.completed.map(\.kind) == [kind])
                #expect(scene.store.requests.first == .options)
            }
        }
    }

    @Test("A file is sent in requests of the given size, and of the size that the server allows")
    func chunks() async throws {
        for given in [UploadProtocol.ietf, .tus] {
            try await UploadScene.with(1000) { scene in
                try await scene.upload(given, chunk: 300)
                #expect(scene.store.completed.map(\.bytes) == [scene.bytes])
                #expect(scene.store.requests == [.post, .patch, .patch, .patch, .patch])
            }
        }
        var limits = ResumableUploadStore.Limits()
        limits.maximumAppend = 400
        try await UploadScene.with(1000, store: ResumableUploadStore(limits: limits)) { scene in
            try await scene.upload(.ietf)
            #expect(scene.store.requests == [.post, .patch, .patch, .patch])
        }
        try await UploadScene.with(1000, store: ResumableUploadStore(limits: limits)) { scene in
            try await scene.upload(.automatic, method: .put)
            #expect(scene.store.requests == [.put, .put, .patch, .patch, .patch])
            #expect(scene.store.completed.map(\.bytes) == [scene.bytes])
        }
    }

    @Test("An upload that the server forgot is created again, also if its only request is the last one")
    func forgotten() async throws {
        for given in [UploadProtocol.ietf, .tus] {
            try await UploadScene.with(1000) { scene in
                scene.store.inject(.forget, into: .patch)
                try await scene.upload(given)
                #expect(scene.store.completed.map(\.bytes) == [scene.bytes])
            }
        }
    }

    private static let faults: [(ResumableUploadStore.Fault, HTTPRequest.Method)] = [
        (.cut(afterBytes: 0), .patch), (.cut(afterBytes: 1), .patch), (.cut(afterBytes: 70_000), .patch),
        (.cut(afterBytes: 300_000), .patch), (.loseResponse, .patch), (.loseResponse, .post),
        (.status(503, ["Retry-After": "0"]), .post), (.status(500), .patch), (.status(429), .patch), (.forget, .patch),
        (.claimOffset(3), .patch),
    ]

    @Test("After a fault the upload resumes, and its file arrives once", arguments: faults.indices)
    func fault(index: Int) async throws {
        let (fault, method) = UploadTransferTests.faults[index]
        for given in [UploadProtocol.ietf, .tus] {
            try await UploadScene.with(300_000) { scene in
                scene.store.inject(fault, into: method)
                try await scene.upload(given, chunk: 200_000)
                #expect(scene.store.completed.map(\.bytes) == [scene.bytes], "\(given)")
            }
        }
    }

    @Test("Bytes that the server acknowledged are not sent again")
    func acknowledged() async throws {
        for given in [UploadProtocol.ietf, .tus] {
            try await UploadScene.with(2 << 20) { scene in
                for _ in 0..<5 { scene.store.inject(.cut(afterBytes: 100_000), into: .patch) }
                try await scene.upload(given)
                #expect(scene.store.completed.map(\.bytes) == [scene.bytes])
                #expect(scene.store.receivedByteCount == scene.bytes.count)
                #expect(scene.store.uploads.count == 1)
            }
        }
    }

    @Test("A response that is lost after the last byte is not a reason to send the file again")
    func lostResponse() async throws {
        for given in [UploadProtocol.ietf, .tus] {
            try await UploadScene.with(1000) { scene in
                scene.store.inject(.loseResponse, into: .patch)
                let result = try await scene.upload(given)
                #expect(result.isResponseLost)
                #expect(scene.store.receivedByteCount == 1000)
                #expect(scene.store.uploads.count == 1)
            }
        }
    }

    @Test("A plain POST is not repeated after a failure, a plain PUT and one with a key are")
    func plain() async throws {
        for fault in [ResumableUploadStore.Fault.loseResponse, .cut(afterBytes: 500)] {
            try await UploadScene.with(1000) { scene in
                scene.store.inject(fault)
                await #expect { try await scene.upload(.plain) } throws: {
                    ($0 as? HTTPError)?.code == .uploadUncertain
                }
                #expect(scene.store.requests == [.post])

                scene.store.inject(fault)
                try await scene.upload(.plain, method: .put)
                #expect(scene.store.requests == [.post, .put, .put])

                scene.store.inject(fault)
                var options = scene.options(.plain)
                options.headers["Idempotency-Key"] = "\"1\""
                try await scene.session.uploadResumably(scene.file, to: scene.url, options: options)
                #expect(scene.store.requests.suffix(2) == [.post, .post])
                #expect(scene.store.uploads.last?.bytes == scene.bytes)
            }
        }
    }

    @Test("An offset after the end of the file is an error, not a loop")
    func offsetAfterEnd() async throws {
        for given in [UploadProtocol.ietf, .tus] {
            try await UploadScene.with(1000) { scene in
                scene.store.inject(.cut(afterBytes: 500), into: .patch)
                scene.store.inject(.claimOffset(1001), into: .head)
                await #expect { try await scene.upload(given) } throws: { ($0 as? HTTPError)?.code == .uploadRejected }
                #expect(scene.store.completed.isEmpty)
            }
        }
    }

    @Test("A server that always fails ends the upload after the retries")
    func alwaysFailing() async throws {
        try await UploadScene.with(1000) { scene in
            for _ in 0..<20 { scene.store.inject(.status(500)) }
            await #expect { try await scene.upload(.ietf) } throws: {
                ($0 as? HTTPError)?.code == .unacceptableStatus && ($0 as? HTTPError)?.status == 500
            }
            #expect(scene.store.requests.count <= 6)
        }
    }

    @Test("A rejection carries the response of the server")
    func rejection() async throws {
        try await UploadScene.with(10) { scene in
            scene.store.inject(.status(403), into: .post)
            await #expect { try await scene.upload(.tus) } throws: {
                ($0 as? HTTPError)?.exchange?.text.hasPrefix("403") == true
            }
        }
    }

    @Test("A file that changes during the upload is an error, and no mixture arrives")
    func changedFile() async throws {
        for given in [UploadProtocol.ietf, .tus, .plain] {
            // A request with all bytes has more than the buffers of the sockets hold, so that the file is not read to
            // its end before it changes.
            try await UploadScene.with(given == .tus ? 1 << 20 : 32 << 20) { scene in
                let (signals, handler) = (OriginSignals(), OriginHandler.resumableUploads(scene.store))
                try await TestOrigin.withOrigin(.plain) { request in
                    let hasBytes = (request.headers["Content-Length"].flatMap { Int($0) } ?? 0) > 0
                    if hasBytes { try await signals.wait(for: "changed") }
                    return try await handler.respond(to: request)
                } run: { origin in
                    await #expect {
                        try await scene.session.uploadResumably(
                            scene.file, to: origin.url("/files"),
                            options: scene.options(given, chunk: 300_000, method: .put)
                        ) { current in
                            guard current.sentByteCount > 0, !signals.isRaised("changed") else { return }
                            try? Data(count: scene.bytes.count).write(to: URL(fileURLWithPath: scene.file))
                            signals.raise("changed")
                        }
                    } throws: {
                        ($0 as? HTTPError)?.code == .uploadFileChanged
                    }
                    #expect(scene.store.completed.isEmpty, "\(given)")
                }
            }
        }
    }

    @Test("A missing file and a directory are errors before any request")
    func missingFile() async throws {
        try await UploadScene.with(1) { scene in
            for path in [scene.root + "/missing", scene.root] {
                await #expect { try await scene.session.uploadResumably(path, to: scene.url) } throws: {
                    ($0 as? HTTPError)?.code == .fileFailed
                }
            }
            #expect(scene.store.requests.isEmpty)
        }
    }

    @Test("Cancelling ends the upload at each request", arguments: UploadProtocol.allCases)
    func cancellation(given: UploadProtocol) async throws {
        for method in [HTTPRequest.Method.options, .post, .patch] {
            try await UploadScene.with(2 << 20) { scene in
                scene.store.inject(.hold(afterBytes: 0), into: method)
                let upload = Task { try await scene.upload(given) }
                #expect(await eventually { scene.store.holdingCount == 1 || scene.store.completed.count == 1 })
                upload.cancel()
                let result = await upload.result
                if scene.store.holdingCount == 1 {
                    #expect { try result.get() } throws: { $0 is CancellationError }
                }
                #expect(scene.session.diagnostics.pool.leased == 0)
            }
        }
    }

    @Test("Progress reaches the whole file, and never exceeds it")
    func progress() async throws {
        try await UploadScene.with(1_000_000) { scene in
            scene.store.inject(.cut(afterBytes: 300_000), into: .patch)
            var last = UploadProgress()
            try await scene.session.uploadResumably(scene.file, to: scene.url, options: scene.options(.ietf)) {
                #expect($0.completedByteCount <= 1_000_000)
                last = $0
            }
            #expect(last.acknowledgedByteCount == 1_000_000)
            #expect(last.fractionCompleted == 1)
            #expect(last.sentByteCount >= 1_000_000)
        }
    }

    @Test("Secrets are not sent to an upload URL of another origin, and content fields only once")
    func secrets() async throws {
        try await UploadScene.with(100) { other in
            let requests = Shared<[OriginFields]>([])
            let elsewhere = Shared<OriginFields>([:])
            try await TestOrigin.withOrigin(.plain) { request in
                elsewhere.change { $0 = request.headers }
                return .status(403)
            } run: { target in
                try await TestOrigin.withOrigin(.plain) { request in
                    requests.change { $0.append(request.headers) }
                    return .status(201, headers: ["Location": target.url("/up")])
                } run: { origin in
                    var options = other.options(.ietf)
                    options.headers = [
                        "Authorization": "Bearer s", "X-Key": "t", "X-Other": "u", "Content-Disposition": "inline",
                    ]
                    options.secretFields = [try #require(HTTPField.Name("X-Key"))]
                    _ = try? await other.session.uploadResumably(other.file, to: origin.url("/"), options: options)
                }
            }
            let first = try #require(requests.value.first)
            #expect(first["Authorization"] == "Bearer s" && first["X-Key"] == "t")
            #expect(first["Content-Disposition"] == "inline")
            let second = elsewhere.value
            #expect(second["Upload-Offset"] == "0" && second["X-Other"] == "u")
            #expect(second["Authorization"] == nil && second["X-Key"] == nil)
            #expect(second["Content-Disposition"] == nil)
        }
    }

    @Test("The user of the URL is sent to the server of the URL")
    func user() async throws {
        let seen = Shared<[String?]>([])
        try await UploadScene.with(10) { scene in
            let handler = OriginHandler.resumableUploads(scene.store)
            try await TestOrigin.withOrigin(.plain) { request in
                seen.change { $0.append(request.headers["Authorization"]) }
                return try await handler.respond(to: request)
            } run: { origin in
                let url = origin.url("/files").replacing("http://", with: "http://me:pw@")
                try await scene.session.uploadResumably(scene.file, to: url, options: scene.options(.tus))
            }
            #expect(seen.value == ["Basic bWU6cHc=", "Basic bWU6cHc="])
        }
    }

    @Test("An upload whose request with the whole file fails continues at the URL of the 104 response")
    func interim() async throws {
        try await UploadScene.with(100_000) { scene in
            scene.store.inject(.cut(afterBytes: 50_000), into: .put)
            try await scene.upload(.automatic, method: .put)
            #expect(scene.store.requests == [.put, .head, .patch])
            #expect(scene.store.completed.map(\.bytes) == [scene.bytes])
            #expect(scene.store.receivedByteCount == scene.bytes.count)
        }
    }

    @Test("A server may report its progress in more interim responses than other requests accept")
    func manyInterim() async throws {
        try await UploadScene.with(1000) { scene in
            try await TestOrigin.withOrigin(.plain) { request in
                for offset in 0..<50 {
                    try await request.send(InterimResponse(104, headers: ["Upload-Offset": "\(offset)"]))
                }
                _ = try await request.collectBody()
                return .status(201)
            } run: { origin in
                let result = try await scene.session.uploadResumably(
                    scene.file, to: origin.url("/"), options: scene.options(.plain))
                #expect(result.statusCode == 201)
            }
        }
    }

    @Test("A response counts although its body is too large or cut off")
    func responseBody() async throws {
        let responses: [OriginResponse] = [
            OriginResponse(201, body: .pattern(1 << 20)),
            OriginResponse(201, body: .pattern(1000)).with { $0.fault = OriginFault(.cut, afterBodyBytes: 10) },
        ]
        for response in responses {
            try await UploadScene.with(1000) { scene in
                let count = Shared(0)
                try await TestOrigin.withOrigin(.plain) { request in
                    _ = try await request.collectBody()
                    count.change { $0 += 1 }
                    return response
                } run: { origin in
                    let result = try await scene.session.uploadResumably(
                        scene.file, to: origin.url("/"), options: scene.options(.plain))
                    #expect(result.statusCode == 201)
                    #expect(result.body.count <= 64 << 10)
                }
                #expect(count.value == 1)
            }
        }
    }
}
