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

    /// Reads the files of a group: lines of Netscape's form, and lines `Set-Cookie: …` as heads have them. One that cannot
    /// be read is no cookies, as with curl; a line `Set-Cookie` that makes no cookie is told.
    static func fill(_ jar: CookieJar, for options: TransferOptions, _ global: GlobalOptions) async {
        for name in options.cookieFiles where !name.isEmpty {
            guard let bytes = try? InputFile.contents(of: name) else { continue }
            let read = options.dropsSessionCookies ? makeJar() : jar
            await read.importNetscape(bytes)
            for value in CookiePlan.headerValues(bytes) {
                guard let problem = await CookiePlan.store(value, in: read), !global.isSilent else {
                    continue
                }
                await Console.complain(
                    "martlet: warning: option -b: a line Set-Cookie of “\(name)” \(problem)\n")
            }
            guard options.dropsSessionCookies else { continue }
            await read.removeSessionCookies()
            await jar.importNetscape(await read.exportNetscape())
        }
    }

    /// The values of the lines `Set-Cookie: …`.
    private static func headerValues(_ bytes: [UInt8]) -> [String] {
        let name = "set-cookie:"
        return bytes.split(whereSeparator: { $0 == 10 || $0 == 13 }).compactMap { line in
            let text = String(decoding: line, as: UTF8.self)
            guard text.prefix(name.count).lowercased().begins(with: name) else { return nil }
            return String(text.dropFirst(name.count))
        }
    }

    /// Stores a cookie as if its domain had set it for all its paths.
    /// - Returns: Why it was not stored, where that is so. It holds nothing of the cookie's value.
    private static func store(_ value: String, in jar: CookieJar) async -> String? {
        let domains = value.split(separator: ";").dropFirst().compactMap { part -> Substring? in
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2, HeaderLines.trimmed(pair[0]).lowercased() == "domain" else { return nil }
            return HeaderLines.trimmed(pair[1])
        }
        guard let domain = domains.last?.drop(while: { $0 == "." }), !domain.isEmpty else {
            return "has no Domain, so that it is sent to nobody"
        }
        let host = domain.contains(":") && !domain.hasPrefix("[") ? "[\(domain)]" : String(domain)
        guard let url = try? HTTPURL("https://\(host)/") else { return "has a Domain that is no host" }
        return await jar.store(setCookieValues: [value], from: url).first.map { "is not stored: \($0)" }
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
            if global.tellsErrors {
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
