import Glibc
import Martlet
import MartletDownloads
import MartletStorage
import MartletTestSupport
import SystemPackage

extension DownloadWork {
    /// Downloads one file by a manager of a directory. The process ends as if it was killed where `point` says:
    ///
    /// - `noted`: before the file gets its name;
    /// - `named`: when it has it, before anything else is done;
    /// - `copied`: the same, where it is a copy that has the name;
    /// - `settled`: when all is done but for noting that it is finished.
    func managed(from url: String, to path: String, in directory: String) async {
        let (files, own) = (FaultyFileSystem(), FaultyFileSystem())
        let end: @Sendable () -> Void = { kill(getpid(), SIGKILL) }
        switch settings["point"] {
        case "noted": files.interrupt(.rename, at: path, with: end)
        case "named": files.interrupt(.rename, at: path) { files.interrupt(.sync, with: end) }
        case "copied":
            files.interrupt(.rename, at: path) {
                files.fail(FaultyFileSystem.Fault(.rename, times: 1, code: EXDEV))
                files.interrupt(.rename, at: path) { files.interrupt(.sync, with: end) }
            }
        case "settled":
            files.interrupt(.rename, at: path) {
                // The folder's, behind which no bytes are touched any more.
                files.interrupt(.sync) { own.interrupt(.create, at: "\(directory)/1.item.new", with: end) }
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
