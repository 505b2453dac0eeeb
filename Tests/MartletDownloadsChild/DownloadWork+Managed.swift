import Glibc
import Martlet
import MartletDownloads
import MartletStorage
import MartletTestSupport
import SystemPackage

extension DownloadWork {
    /// Downloads one file with a manager of a directory. The process ends abruptly at the given `point`:
    ///
    /// - `noted`: before the file gets its name;
    /// - `named`: after the file has its name, before anything else;
    /// - `copied`: the same, if a copy has the name;
    /// - `settled`: before the manager records that the download is finished.
    func managed(from url: String, to path: String, in directory: String) async {
        let (files, own) = (FaultyFileSystem(), FaultyFileSystem())
        let end: @Sendable () -> Void = { kill(getpid(), SIGKILL) }
        let recording: @Sendable () -> Void = { own.interrupt(.create, at: "\(directory)/1.item.new", with: end) }
        // The next call after the rename syncs the directory, unless the options omit that.
        let isSynced = options.durability == .synced
        switch settings["point"] {
        case "noted": files.interrupt(.rename, at: path, with: end)
        case "named":
            files.interrupt(.rename, at: path) {
                if isSynced { files.interrupt(.sync, with: end) } else { recording() }
            }
        case "copied":
            files.interrupt(.rename, at: path) {
                files.fail(FaultyFileSystem.Fault(.rename, times: 1, code: EXDEV))
                files.interrupt(.rename, at: path) { files.interrupt(isSynced ? .sync : .remove, with: end) }
            }
        case "settled":
            files.interrupt(.rename, at: path) {
                if isSynced { files.interrupt(.sync, with: recording) } else { recording() }
            }
        default: break
        }
        do {
            let session = session
            let manager = try await DownloadManager(
                session: session, directory: FilePath(directory), files: own,
                make: { plan, status, slots in
                    DownloadJob(plan, session: session, slots: slots, status: status, files: files)
                })
            let id = try await manager.add(url, to: .file(FilePath(path)), options: options)
            if let download = manager.download(id) { tell(try await download.value) }
            await manager.close()
        } catch {
            tell(error)
        }
    }
}
