import Martlet

/// Downloads that belong to a directory and outlive the program (`--state`).
actor ManagedDownloads: DownloadBackend {
    nonisolated let manager: DownloadManager
    /// All downloads: those that were found in the directory, then the new ones.
    nonisolated let plans: [DownloadPlan]
    private let new: ArraySlice<DownloadPlan>
    private let makesFolders: Bool
    private var begun: [Int: Result<Download, any Error>]
    /// Whether all new downloads are on the disk.
    private let isPrepared = CurrentValue(false)

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

    /// Opens the directory of a command line, and resumes its downloads; `nil` if there is none.
    /// - Parameter plans: The downloads of the command line. Those that are in the directory already are not added again.
    static func open(
        _ group: TransferOptions, _ plans: [DownloadPlan], _ caller: CredentialPlan, _ session: HTTPSession
    ) async throws(UsageError) -> ManagedDownloads? {
        let options = group.download
        guard let folder = options.stateFolder else { return nil }
        let access = try DownloadCredentials(plans, group, caller)
        // Downloads without credentials get neither cookies nor a client certificate.
        let stranger = session.with {
            $0.cookies = nil
            $0.tls.identity = nil
        }
        let limits = DownloadLimits(
            concurrentFiles: options.fileLimit, perHost: options.fileLimitPerHost,
            connectionsPerHost: max(6, options.segments))
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
            return ManagedDownloads(
                manager, found, new, makesFolders: group.makesFolders || group.download.folder != nil)
        } catch let error as HTTPError {
            throw UsageError("option --state: \(error.message)", status: DownloadOutcome.status(of: error))
        } catch { throw UsageError("option --state: \(error)", status: .writeFailed) }
    }

    /// The identity of a download: its URL and its target.
    private struct Key: Hashable {
        let url: String
        let isFolder: Bool
        let path: String

        init(_ plan: DownloadPlan) {
            url = plan.url.absoluteForm
            let given: FilePath
            switch plan.target.place {
            case .file(let path): (isFolder, given) = (false, path)
            case .directory(let path): (isFolder, given) = (true, path)
            }
            let absolute = try? WorkingDirectory.absolute(given.string)
            path = (absolute.map { FilePath($0) } ?? given).lexicallyNormalized().string
        }
    }

    /// The downloads of the directory, in the order in which they were added. Paused and failed ones are resumed.
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

    /// Adds the new downloads, in order; also while the program is being stopped, so that they are in the directory.
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
        } catch { return .failure(error) }
    }

    func begin(_ plan: DownloadPlan) async throws -> Download {
        guard let result = begun[plan.number] else { throw CancellationError() }
        return try result.get()
    }

    /// Stops all downloads: a single one would stay paused.
    func stop(_ downloads: [Download]) async {
        await isPrepared.becomesTrue()
        await manager.close()
    }

    /// A download that cannot be forgotten is reported again by the next program.
    func forget(_ download: Download) async { try? await manager.remove(download.id) }

    /// Releases the directory.
    func close() async { await manager.close() }
}
