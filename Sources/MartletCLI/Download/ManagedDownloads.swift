import Martlet
import MartletDownloads
import MartletStorage
import MartletTransport
import SystemPackage

/// Downloads that belong to a directory and outlive the program (`--state`).
actor ManagedDownloads: DownloadStarting {
    /// What has them.
    nonisolated let manager: DownloadManager
    /// All there is to do: what was found in the directory, then what is new.
    nonisolated let plans: [DownloadPlan]
    private let new: ArraySlice<DownloadPlan>
    private let makesFolders: Bool
    private var begun: [Int: Result<Download, any Error>]
    /// Whether all new ones are on the disk.
    private let isPrepared = NewestValue(false)

    private init(
        _ manager: DownloadManager, _ found: [(DownloadPlan, Download)], _ new: [DownloadPlan],
        makesFolders: Bool
    ) {
        self.manager = manager
        plans = found.map(\.0) + new
        self.new = plans[found.count...]
        self.makesFolders = makesFolders
        begun = Dictionary(found.map { ($0.0.number, .success($0.1)) }) { first, _ in first }
    }

    /// Opens the directory of a command line, and goes on with what is there; `nil` where it has none.
    /// - Parameter plans: What the command line names. What is in the directory already is not there twice.
    static func open(
        _ group: OptionGroup, _ plans: [DownloadPlan], _ caller: CallerPlan, _ session: HTTPSession
    ) async throws(UsageError) -> ManagedDownloads? {
        let wish = group.download
        guard let folder = wish.stateFolder else { return nil }
        let access = try DownloadAccess(plans, group.transfer, caller)
        // To whom the command line has given nothing, it shows neither cookies nor a certificate.
        let stranger = session.with {
            $0.cookies = nil
            $0.tls.identity = nil
        }
        let limits = DownloadLimits(
            files: wish.fileLimit, perHost: wish.fileLimitPerHost, connectionsPerHost: max(6, wish.segments))
        do {
            let manager = try await DownloadManager(
                session: session, directory: FilePath(folder), limits: limits,
                make: { plan, status, slots in
                    var plan = plan
                    let isOwn = access.grant(&plan)
                    return DownloadJob(
                        plan, session: isOwn ? session : stranger, slots: slots, status: status)
                })
            let found = await found(in: manager)
            let known = Set(found.map { Key($0.0) })
            var new = plans.filter { !known.contains(Key($0)) }
            for index in new.indices { new[index].number = found.count + index + 1 }
            return ManagedDownloads(manager, found, new, makesFolders: group.transfer.makesFolders)
        } catch let error as HTTPError {
            throw UsageError("option --state: \(error.message)", status: DownloadOutcome.status(of: error))
        } catch {
            throw UsageError("option --state: \(error)", status: .writeFailed)
        }
    }

    /// By what a download that is named again is known: from where, and to where.
    private struct Key: Hashable {
        var url: String
        var isFolder: Bool
        var path: String

        init(_ plan: DownloadPlan) {
            url = plan.url.absoluteForm
            let given: FilePath
            switch plan.target {
            case .file(let path): (isFolder, given) = (false, path)
            case .folder(let path): (isFolder, given) = (true, path)
            }
            let absolute = try? WorkingFolder.absolute(given.string)
            path = (absolute.map { FilePath($0) } ?? given).lexicallyNormalized().string
        }
    }

    /// What is in the directory, in the order in which it was added. What is paused or has failed goes on.
    private static func found(in manager: DownloadManager) async -> [(DownloadPlan, Download)] {
        var found: [(DownloadPlan, Download)] = []
        for id in manager.downloads {
            guard let download = manager.download(id) else { continue }
            switch download.state {
            case .cancelled: continue
            case .paused, .failed: try? await download.resume()
            case .waiting, .running, .verifying, .finished: break
            }
            found.append((DownloadPlan(download, number: found.count + 1), download))
        }
        return found
    }

    // MARK: Starting

    /// Adds what is new, in order. It is done also when the program is being stopped: what the command line names is in the
    /// directory then.
    func prepare() async {
        for plan in new { begun[plan.number] = await add(plan) }
        isPrepared.update { true }
    }

    private func add(_ plan: DownloadPlan) async -> Result<Download, any Error> {
        do {
            if makesFolders { try await plan.makeFolder() }
            let id = try await manager.add(plan.url.absoluteString, to: plan.target, options: plan.options)
            guard let download = manager.download(id) else { throw CancellationError() }
            return .success(download)
        } catch {
            return .failure(error)
        }
    }

    func begin(_ plan: DownloadPlan) async throws -> Download {
        guard let result = begun[plan.number] else { throw CancellationError() }
        return try result.get()
    }

    /// Stops all of them: one alone would stay paused.
    func stop(_ downloads: [Download]) async {
        await isPrepared.becomesTrue()
        await manager.close()
    }

    /// Where it cannot be forgotten, the next program tells it again.
    func forget(_ download: Download) async { try? await manager.remove(download.id) }

    /// Lets others have the directory.
    func close() async { await manager.close() }
}
