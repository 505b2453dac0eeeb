import Foundation
import Martlet
import MartletDownloads
import MartletStorage
import MartletTransport
import Synchronization

/// A directory for the downloads of a manager, and downloads that fetch nothing.
final class QueueScene: Sendable {
    let path: String
    let downloads = FakeDownloads()
    let session = HTTPSession()

    init() {
        path = FileManager.default.temporaryDirectory.appending(path: "martlet-\(UUID().uuidString)").path
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    var directory: FilePath { FilePath(path) }

    /// Opens a manager of the directory.
    func manager(
        _ limits: DownloadLimits = DownloadLimits(), files: any FileSystem = LinuxFileSystem(),
        prepare: (@Sendable (inout HTTPHeaders, HTTPURL) async throws -> Void)? = nil
    ) async throws -> DownloadManager {
        try await DownloadManager(
            session: session, directory: directory, limits: limits, prepare: prepare, files: files,
            make: downloads.factory)
    }

    /// Opens the directory once its previous manager has released it, which happens asynchronously.
    func nextManager() async throws -> DownloadManager {
        while true {
            do {
                return try await manager()
            } catch let error as HTTPError where error.code == .alreadyInProgress {
                await Task.yield()
            }
        }
    }

    /// The names in the directory except the lock.
    var names: [String] {
        get throws { try LinuxFileSystem().names(inDirectory: path).filter { $0 != "lock" }.sorted() }
    }

    func contents(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: "\(path)/\(name)")))
    }

    func write(_ bytes: [UInt8], to name: String) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: "\(path)/\(name)"))
    }

    /// Adds a download with the given name.
    @discardableResult
    func add(
        _ name: String, to manager: DownloadManager, host: String = "a.example",
        options: DownloadOptions = DownloadOptions(), priority: DownloadPriority = .normal
    ) async throws -> DownloadID {
        try await manager.add(
            "https://\(host)/\(name)", to: FilePath("/data/\(name)"), options: options, priority: priority)
    }
}

extension DownloadState {
    /// The state in one word.
    var word: String {
        switch self {
        case .waiting: "waiting"
        case .running: "running"
        case .verifying: "verifying"
        case .paused: "paused"
        case .finished: "finished"
        case .failed(let error): "failed \(error.code)"
        case .cancelled: "cancelled"
        }
    }
}

extension DownloadManagerEvent {
    /// The event in a few words.
    var words: String {
        switch self {
        case .added(let id, _): "added \(id)"
        case .began(let id, _): "began \(id)"
        case .finished(let id, _): "finished \(id)"
        case .failed(let id, _, let error): "failed \(id) \(error.code)"
        case .retrying(let id, _, let error, _): "retrying \(id) \(error.code)"
        case .paused(let id, _): "paused \(id)"
        case .cancelled(let id, _): "cancelled \(id)"
        case .fileFailed(let id, let error): "file failed \(id) \(error.code)"
        case .itemQuarantined(let path, _): "set aside \(path.lastComponent?.string ?? "")"
        case .itemSkipped(let path, _): "left alone \(path.lastComponent?.string ?? "")"
        case .allFinished: "all finished"
        }
    }
}

extension DownloadManager {
    /// The numbers of all downloads.
    nonisolated var ids: [DownloadID] { all.map(\.id) }

    /// The state of a download in one word.
    nonisolated func word(_ id: DownloadID) -> String { download(id)?.state.word ?? "unknown" }

    /// Waits until a download is in one of these states.
    nonisolated func reach(_ id: DownloadID, _ words: String...) async {
        for await state in states(of: id) where words.contains(state.word) { return }
    }

    /// Collects the events so far, up to a given event.
    nonisolated func events(until last: String) async -> [String] {
        var words: [String] = []
        for await event in events {
            words.append(event.words)
            if event.words == last { break }
        }
        return words
    }
}
