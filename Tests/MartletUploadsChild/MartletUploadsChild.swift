import Glibc
import MartletCore
import MartletUploads
import SystemPackage

/// Uploads a file with a manager, and may be killed while it does:
/// `MartletUploadsChild DIRECTORY FILE URL PROTOCOL METHOD CHUNK`. The file is added only if the directory has no upload.
///
/// It writes `finished STATUS`, `failed CODE` or `error …`.
@main
enum MartletUploadsChild {
    static func main() async {
        let words = Array(CommandLine.arguments.dropFirst())
        guard words.count == 6, let kind = UploadProtocol.allCases.first(where: { "\($0)" == words[3] }),
            let method = HTTPRequest.Method(rawValue: words[4])
        else { exit(64) }
        do {
            let session = HTTPSession()
            let manager = try await UploadManager(session: session, directory: FilePath(words[0]))
            if await manager.uploads.isEmpty {
                let retry = UploadRetry(initialDelay: .milliseconds(1), maximumDelay: .milliseconds(5))
                try await manager.add(
                    FilePath(words[1]), to: words[2],
                    options: UploadOptions(
                        method: method, protocol: kind, chunkSize: Int(words[5]).map { ByteCount($0) }, retry: retry))
            }
            for upload in await manager.uploads { say("finished \(try await upload.value.statusCode)") }
            await manager.close()
        } catch let error as HTTPError { say("failed \(error.code)") } catch { say("error \(error)") }
        exit(0)
    }

    private static func say(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = unsafe bytes.withUnsafeBytes { unsafe write(STDOUT_FILENO, $0.baseAddress, $0.count) }
    }
}
