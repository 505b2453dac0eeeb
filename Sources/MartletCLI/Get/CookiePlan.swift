import Glibc
import Martlet
import SystemPackage

/// Takes cookies from the files of `-b`, and writes those of `-c`.
enum CookiePlan {
    /// Whether a group's answers leave cookies, and its requests take them along.
    static func isActive(_ options: TransferOptions) -> Bool {
        !options.cookieFiles.isEmpty || options.cookieOutput != nil
    }

    /// A jar as curl's engine is one: http to this machine counts as secure.
    static func makeJar() -> CookieJar { CookieJar(trustsLoopback: true) }

    /// Reads the files of a group. One that cannot be read is no cookies, as with curl.
    static func fill(_ jar: CookieJar, for options: TransferOptions) async {
        for name in options.cookieFiles where !name.isEmpty {
            guard let bytes = try? InputFile.contents(of: name) else { continue }
            guard options.dropsSessionCookies else {
                await jar.importNetscape(bytes)
                continue
            }
            let read = makeJar()
            await read.importNetscape(bytes)
            await read.removeSessionCookies()
            await jar.importNetscape(await read.exportNetscape())
        }
    }

    /// Writes all cookies to the file of a group; that it cannot be done is told, and changes no exit code.
    static func write(_ jar: CookieJar, to name: String, _ global: GlobalOptions) async {
        do {
            if name == "-" {
                try await Console.write(await jar.exportNetscape())
            } else if isSpecial(name) {
                let text = await jar.exportNetscape()
                let file = try FileDescriptor.open(FilePath(name), .writeOnly, options: .closeOnExec)
                defer { try? file.close() }
                try await Console.write(text, to: file, named: name)
            } else {
                try await jar.exportNetscape(to: FilePath(name))
            }
        } catch {
            if !global.isSilent || global.showsErrors {
                await Console.complain("martlet: could not save cookies in “\(name)”: \(error)\n")
            }
        }
    }

    /// Whether it is there and no plain file, such as `/dev/null`: nothing must take its place.
    private static func isSpecial(_ name: String) -> Bool {
        var status = stat()
        return unsafe stat(name, &status) == 0 && status.st_mode & S_IFMT != S_IFREG
    }
}
