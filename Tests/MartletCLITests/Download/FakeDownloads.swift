import MartletURL
import Martlet
import MartletCaching
import MartletCore
import MartletStreams
import MartletDownloads
import SystemPackage
import Synchronization

@testable import MartletCLI

/// A backend of scripted downloads.
final class FakeDownloads: DownloadBackend {
    /// One scripted download.
    final class Fake: Download.Controller {
        let plan: DownloadPlan
        let status = DownloadStatus(.running)

        init(_ plan: DownloadPlan) {
            self.plan = plan
        }

        func finish(at path: String? = nil, contentType: String? = nil) {
            var result = DownloadResult(
                path: FilePath(path ?? plan.name), byteCount: 10, receivedByteCount: 10, url: plan.url)
            result.contentType = contentType
            end(.finished(result), .finished(result))
        }

        func fail(_ code: HTTPError.Code) {
            let error = HTTPError(code, phase: .preparing, message: "\(code)")
            end(.failed(error), .failed(error))
        }

        private func end(_ state: DownloadState, _ event: DownloadEvent) {
            status.become(state)
            status.events.add(event)
            status.events.end()
        }

        func pause() async {
            guard !status.state.hasEnded else { return }
            status.become(.paused)
            status.events.add(.paused)
        }

        func resume(from url: HTTPURL?) async throws {}
        func cancel() async {}
        func setPriority(_ priority: DownloadPriority) async {}
        var url: HTTPURL { plan.url }
        var target: DownloadTarget { plan.target }
        var options: DownloadOptions { plan.options }
        var path: FilePath? { nil }
    }

    private struct State {
        var fakes: [Fake] = []
        var stopCount = 0
    }

    private let state = Mutex(State())
    private let didBegin: @Sendable (Fake, FakeDownloads) -> Void

    /// Passes each download to a closure when it has started.
    init(_ didBegin: @escaping @Sendable (Fake, FakeDownloads) -> Void) {
        self.didBegin = didBegin
    }

    /// The downloads that were started, in order.
    var fakes: [Fake] { state.withLock { $0.fakes } }
    /// The number of times that all downloads were stopped.
    var stopCount: Int { state.withLock { $0.stopCount } }

    func begin(_ plan: DownloadPlan) async throws -> Download {
        let fake = Fake(plan)
        fake.status.events.add(.started(resumedByteCount: 0))
        state.withLock { $0.fakes.append(fake) }
        didBegin(fake, self)
        return Download(id: DownloadID(UInt64(plan.number)), status: fake.status, controller: fake)
    }

    func stop(_ downloads: [Download]) async {
        state.withLock { $0.stopCount += 1 }
        for download in downloads { await download.pause() }
    }
}

/// Waits for a signal that never arrives. The end of the run cancels the wait.
func noSignal() async -> Int32? {
    try? await Task.sleep(for: .seconds(1_000_000))
    return nil
}
