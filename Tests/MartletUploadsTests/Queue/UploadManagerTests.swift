import Foundation
import MartletCore
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletUploads

@Suite("The manager of uploads")
struct UploadManagerTests {
    @Test("An upload finishes, and stays in the list until it is removed, also in later managers")
    func finishes() async throws {
        try await UploadScene.with(1000) { scene in
            let manager = try await scene.manager()
            let id = try await manager.add(scene.file, to: scene.url, options: scene.options(.ietf))
            let result = try await manager.value(of: id)
            #expect(result.statusCode == 201)
            try await manager.allFinished
            #expect(manager.progress.current.fractionCompleted == 1)
            await manager.close()

            let next = try await scene.manager()
            let upload = try #require(await next.upload(id))
            let stored = try await upload.value
            #expect(stored.body == result.body && stored.uploadURL == result.uploadURL)
            #expect(next.progress.current.acknowledgedByteCount == 1000)
            try await next.remove(id)
            #expect(await next.uploads.isEmpty)
            await next.close()
            let last = try await scene.manager()
            #expect(await last.uploads.isEmpty)
            await last.close()
            #expect(scene.store.uploads.count == 1)
        }
    }

    @Test("A manager that was closed in the middle is continued by the next one", arguments: UploadProtocol.allCases)
    func continues(given: UploadProtocol) async throws {
        try await UploadScene.with(2 << 20) { scene in
            scene.store.inject(.hold(afterBytes: 700_000), into: given == .plain ? .put : .patch)
            let manager = try await scene.manager()
            let id = try await manager.add(scene.file, to: scene.url, options: scene.options(given, method: .put))
            #expect(await eventually { scene.store.holdingCount == 1 })
            await manager.close()
            #expect(scene.session.diagnostics.pool.leased == 0)
            await #expect { try await manager.add(scene.file, to: scene.url) } throws: {
                ($0 as? HTTPError)?.code == .uploadManagerClosed
            }

            let next = try await scene.manager()
            _ = try await next.value(of: id)
            await next.close()
            #expect(scene.store.completed.map(\.bytes) == [scene.bytes])
            if given != .plain { #expect(scene.store.receivedByteCount == scene.bytes.count) }
        }
    }

    @Test("A plain POST that was interrupted by the end of a process is uncertain until it is resumed")
    func uncertain() async throws {
        try await UploadScene.with(2 << 20) { scene in
            scene.store.inject(.hold(afterBytes: 700_000), into: .post)
            let manager = try await scene.manager()
            let id = try await manager.add(scene.file, to: scene.url, options: scene.options(.plain))
            #expect(await eventually { scene.store.holdingCount == 1 })
            await manager.close()
            let next = try await scene.manager()
            await #expect { try await next.value(of: id) } throws: { ($0 as? HTTPError)?.code == .uploadUncertain }
            #expect(scene.store.requests == [.post])
            try await next.resume(id)
            _ = try await next.value(of: id)
            await next.close()
            #expect(scene.store.requests == [.post, .post])
        }
    }

    @Test("A paused upload stays paused in the next manager, and resumes at the acknowledged offset")
    func pauses() async throws {
        try await UploadScene.with(2 << 20) { scene in
            scene.store.inject(.hold(afterBytes: 700_000), into: .patch)
            let manager = try await scene.manager()
            let id = try await manager.add(scene.file, to: scene.url, options: scene.options(.tus))
            #expect(await eventually { scene.store.holdingCount == 1 })
            await manager.pause(id)
            #expect(await manager.states(of: id).current == .paused)
            #expect(scene.session.diagnostics.pool.leased == 0)
            await manager.close()
            let next = try await scene.manager()
            #expect(await next.states(of: id).current == .paused)
            try await next.resumeAll()
            _ = try await next.value(of: id)
            await next.close()
            #expect(scene.store.completed.map(\.bytes) == [scene.bytes])
            #expect(scene.store.receivedByteCount == scene.bytes.count)
        }
    }

    @Test("Resuming a running upload and cancelling a finished one write no record")
    func unchangedRecords() async throws {
        // More than the buffers of the sockets hold: a record is written when the last byte was read.
        try await UploadScene.with(16 << 20) { scene in
            scene.store.inject(.hold(afterBytes: 700_000), into: .patch)
            let manager = try await scene.manager()
            let id = try await manager.add(scene.file, to: scene.url, options: scene.options(.tus))
            // Each write replaces the file.
            func file() throws -> String {
                let path = "\(scene.directory)/\(id).upload"
                let number = try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber]
                return "\(try #require(number))"
            }
            #expect(await eventually { scene.store.holdingCount == 1 })
            let running = try file()
            try await manager.resume(id)
            #expect(try file() == running)
            await manager.pause(id)
            try await manager.resume(id)
            _ = try await manager.value(of: id)
            let finished = try file()
            await manager.cancel(id)
            #expect(try file() == finished)
            await manager.close()
        }
    }

    @Test("Cancelling deletes the upload on the server and the record")
    func cancels() async throws {
        for given in [UploadProtocol.ietf, .tus] {
            try await UploadScene.with(2 << 20) { scene in
                scene.store.inject(.hold(afterBytes: 700_000), into: .patch)
                let manager = try await scene.manager()
                let id = try await manager.add(scene.file, to: scene.url, options: scene.options(given))
                let upload = try #require(await manager.upload(id))
                #expect(await eventually { scene.store.holdingCount == 1 })
                await manager.cancel(id)
                #expect(upload.state == .cancelled)
                #expect(scene.store.requests.last == .delete)
                #expect(scene.store.uploads.isEmpty)
                #expect(await manager.uploads.isEmpty)
                await #expect(throws: CancellationError.self) { try await upload.value }
                await manager.close()
                #expect(try FileManager.default.contentsOfDirectory(atPath: scene.directory) == ["lock"])
            }
        }
    }

    @Test("A cancellation that was not completed is completed by the next manager")
    func cancelsLater() async throws {
        try await UploadScene.with(1000) { scene in
            scene.store.inject(.status(403), into: .patch)
            let manager = try await scene.manager()
            let id = try await manager.add(scene.file, to: scene.url, options: scene.options(.ietf))
            await #expect(throws: HTTPError.self) { try await manager.value(of: id) }
            await manager.close()
            let path = "\(scene.directory)/\(id).upload"
            var item = try UploadItemCodec.decode([UInt8](try Data(contentsOf: URL(fileURLWithPath: path))))
            item.stage = .cancelled
            try Data(UploadItemCodec.encode(item)).write(to: URL(fileURLWithPath: path))
            let next = try await scene.manager()
            try await next.allFinished
            #expect(await next.uploads.isEmpty)
            await next.close()
            #expect(scene.store.uploads.isEmpty)
        }
    }

    @Test("Secrets are not on disk, and are added to each request by the closure in the next manager")
    func secrets() async throws {
        let seen = Shared<[String?]>([])
        let store = ResumableUploadStore()
        let handler = OriginHandler.resumableUploads(store)
        try await TestOrigin.withOrigin(.plain) { request in
            seen.change { $0.append(request.headers["Authorization"]) }
            return try await handler.respond(to: request)
        } run: { origin in
            try await UploadScene.with(1000) { scene in
                store.inject(.status(403), into: .patch)
                let manager = try await scene.manager()
                var options = scene.options(.ietf)
                options.headers["Authorization"] = "Bearer first-secret"
                let id = try await manager.add(scene.file, to: origin.url("/files"), options: options)
                await #expect(throws: HTTPError.self) { try await manager.value(of: id) }
                await manager.close()
                #expect(seen.value == ["Bearer first-secret", "Bearer first-secret"])
                #expect(try !scene.stored().contains("secret"))

                let next = try await scene.manager { headers, _ in headers["Authorization"] = "Bearer second" }
                try await next.resume(id)
                _ = try await next.value(of: id)
                await next.close()
                #expect(seen.value.dropFirst(2) == ["Bearer second", "Bearer second"])
                #expect(store.completed.map(\.bytes) == [scene.bytes])
            }
        }
    }

    @Test("Fields that the closure adds do not follow a redirect to another origin, those about the content do")
    func redirectedAway() async throws {
        let seen = Shared<[OriginFields]>([])
        try await UploadScene.with(1000) { scene in
            let handler = OriginHandler.resumableUploads(scene.store)
            try await TestOrigin.withOrigin(.plain) { request in
                seen.change { $0.append(request.headers) }
                return try await handler.respond(to: request)
            } run: { other in
                let target = other.url("/files")
                try await TestOrigin.withOrigin(.plain) { request in
                    seen.change { $0.append(request.headers) }
                    _ = try await request.collectBody()
                    return .redirect(to: target, status: 307)
                } run: { origin in
                    let manager = try await scene.manager { headers, _ in
                        headers["X-Api-Key"] = "secret"
                        headers["Content-Type"] = "text/plain"
                    }
                    let id = try await manager.add(
                        scene.file, to: origin.url("/files"), options: scene.options(.plain))
                    _ = try await manager.value(of: id)
                    await manager.close()
                }
            }
            #expect(seen.value.map { $0["X-Api-Key"] } == ["secret", nil])
            #expect(seen.value.map { $0["Content-Type"] } == ["text/plain", "text/plain"])
            #expect(scene.store.completed.map(\.bytes) == [scene.bytes])
        }
    }

    @Test("Cancelling and closing do not wait for a closure that never returns")
    func prepareHangs() async throws {
        try await UploadScene.with(10) { scene in
            let signals = OriginSignals()
            defer { signals.raise("end") }
            let manager = try await scene.manager(prepare: { _, _ in
                signals.raise("asked")
                while !signals.isRaised("end") { await Task.yield() }
            })
            let id = try await manager.add(scene.file, to: scene.url)
            try await signals.wait(for: "asked")
            await manager.cancel(id)
            await manager.close()
            #expect(scene.store.requests.isEmpty)
        }
    }

    @Test("An error of the closure that prepares requests fails the upload, without its message")
    func prepareError() async throws {
        struct Failure: Error, CustomStringConvertible { let description = "secret" }
        try await UploadScene.with(1000) { scene in
            let manager = try await scene.manager { _, _ in throw Failure() }
            let id = try await manager.add(scene.file, to: scene.url)
            await #expect { try await manager.value(of: id) } throws: {
                ($0 as? HTTPError)?.code == .invalidRequest && !"\($0)".contains("secret")
            }
            await manager.close()
            #expect(scene.store.requests.isEmpty)
        }
    }

    @Test("A file that changed before its upload fails, and is sent anew when it is resumed")
    func changedFile() async throws {
        try await UploadScene.with(2 << 20) { scene in
            scene.store.inject(.hold(afterBytes: 700_000), into: .patch)
            let manager = try await scene.manager()
            let id = try await manager.add(scene.file, to: scene.url, options: scene.options(.ietf))
            #expect(await eventually { scene.store.holdingCount == 1 })
            await manager.close()
            let changed = Data(repeating: 7, count: 500)
            try changed.write(to: URL(fileURLWithPath: scene.file))
            let next = try await scene.manager()
            await #expect { try await next.value(of: id) } throws: { ($0 as? HTTPError)?.code == .uploadFileChanged }
            try await next.resume(id)
            _ = try await next.value(of: id)
            await next.close()
            #expect(scene.store.completed.map(\.bytes) == [[UInt8](changed)])
        }
    }

    @Test("No more uploads run than the limits allow, and the urgent one is the next")
    func limits() async throws {
        try await UploadScene.with(1000) { scene in
            scene.store.inject(.hold(afterBytes: 10), into: .patch)
            let manager = try await scene.manager(limits: UploadLimits(concurrentFiles: 1))
            let first = try await manager.add(scene.file, to: scene.url, options: scene.options(.ietf))
            #expect(await eventually { scene.store.holdingCount == 1 })
            var ids: [UploadID] = []
            for (number, priority) in [UploadPriority.low, .normal, .high].enumerated() {
                var options = scene.options(.ietf)
                options.priority = priority
                options.headers["X-Number"] = "\(number)"
                ids.append(try await manager.add(scene.file, to: scene.url, options: options))
            }
            for id in ids { #expect(await manager.states(of: id).current == .waiting) }
            await manager.cancel(first)
            try await manager.allFinished
            await manager.close()
            #expect(scene.store.completed.map { $0.headers["X-Number"] } == ["2", "1", "0"])
        }
    }

    @Test("Only one manager has a directory, and one of another kind is rejected")
    func directory() async throws {
        try await UploadScene.with(1) { scene in
            let manager = try await scene.manager()
            await #expect { try await scene.manager() } throws: { ($0 as? HTTPError)?.code == .alreadyInProgress }
            await manager.close()
            await #expect { try await UploadManager(session: scene.session, directory: scene.root) } throws: {
                ($0 as? HTTPError)?.code == .fileFailed
            }
        }
    }

    @Test("A damaged record is moved, and the other uploads continue")
    func damagedRecord() async throws {
        try await UploadScene.with(1000) { scene in
            let manager = try await scene.manager(limits: UploadLimits(concurrentFiles: 0))
            let first = try await manager.add(scene.file, to: scene.url, options: scene.options(.ietf))
            let second = try await manager.add(scene.file, to: scene.url, options: scene.options(.ietf))
            await manager.close()
            try Data([1, 2, 3]).write(to: URL(fileURLWithPath: "\(scene.directory)/\(first).upload"))
            let next = try await scene.manager()
            #expect(next.findings.map(\.isMoved) == [true])
            #expect(next.findings.first?.path.string == "\(scene.directory)/corrupt/\(first).upload")
            _ = try await next.value(of: second)
            #expect(await next.upload(first) == nil)
            await next.close()
        }
    }

    @Test("A disk that fails before the first byte fails the upload, and nothing is sent")
    func fullDisk() async throws {
        try await UploadScene.with(1000) { scene in
            let files = FaultyFileSystem()
            let manager = try await UploadManager(
                session: scene.session, directory: FilePath(scene.directory), limits: UploadLimits(), files: files)
            files.fail(FaultyFileSystem.Fault(.write, times: 100, code: ENOSPC))
            await #expect { try await manager.add(scene.file, to: scene.url) } throws: {
                ($0 as? HTTPError)?.code == .diskFull
            }
            #expect(await manager.uploads.isEmpty)
            await manager.close()
            #expect(scene.store.requests.isEmpty)
        }
    }

    @Test("Commands of all kinds at the same time end in a consistent state")
    func race() async throws {
        try await UploadScene.with(50_000) { scene in
            let manager = try await scene.manager()
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<20 {
                    group.addTask {
                        let given: UploadProtocol = number.isMultiple(of: 2) ? .ietf : .tus
                        guard
                            let id = try? await manager.add(
                                scene.file, to: scene.url, options: scene.options(given, chunk: 20_000))
                        else { return }
                        await manager.pause(id)
                        try? await manager.resume(id)
                        if number.isMultiple(of: 5) { await manager.cancel(id) }
                    }
                }
            }
            try await manager.allFinished
            for upload in await manager.uploads {
                #expect((200..<300).contains(try await upload.value.statusCode))
            }
            #expect(await manager.uploads.count >= 16)
            await manager.close()
            #expect(scene.store.completed.allSatisfy { $0.bytes == scene.bytes })
            #expect(scene.session.diagnostics.pool.leased == 0)
        }
    }

    @Test("A pause that another caller revokes returns, and the upload continues")
    func revokedPause() async throws {
        try await UploadScene.with(2 << 20) { scene in
            scene.store.inject(.hold(afterBytes: 700_000), into: .patch)
            scene.store.inject(.hold(afterBytes: 700_000), into: .patch)
            let manager = try await scene.manager()
            let id = try await manager.add(scene.file, to: scene.url, options: scene.options(.tus))
            #expect(await eventually { scene.store.holdingCount == 1 })
            async let pausing: Void = manager.pause(id)
            try await manager.resume(id)
            await pausing
            try await manager.resume(id)
            #expect(await eventually { scene.store.holdingCount == 2 })
            #expect(await manager.states(of: id).current == .running)
            await manager.cancel(id)
            await manager.close()
        }
    }

    @Test("The states end with the manager, also if it is released without being closed")
    func release() async throws {
        try await UploadScene.with(2 << 20) { scene in
            scene.store.inject(.hold(afterBytes: 700_000), into: .patch)
            var manager: UploadManager? = try await scene.manager()
            let id = try #require(try await manager?.add(scene.file, to: scene.url, options: scene.options(.tus)))
            let states = try #require(await manager?.states(of: id))
            #expect(await eventually { scene.store.holdingCount == 1 })
            manager = nil
            for await state in states { #expect(!state.hasEnded) }
            // The directory is released when the run has ended.
            var next: UploadManager?
            #expect(
                await eventually {
                    next = try? await scene.manager()
                    return next != nil
                })
            _ = try await next?.value(of: id)
            await next?.close()
            #expect(scene.store.completed.map(\.bytes) == [scene.bytes])
        }
    }
}
