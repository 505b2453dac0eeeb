import Glibc
import Martlet

/// Reads cookies from the files of `-b`, and writes them to that of `-c`.
enum CookiePlan {
    /// Whether cookies of responses are stored and sent.
    static func isActive(_ options: TransferOptions) -> Bool {
        !options.cookieFiles.isEmpty || options.cookieOutput != nil
    }

    /// A jar like that of curl: http to the loopback interface counts as secure.
    static func makeJar() -> CookieJar { CookieJar(trustsLoopback: true) }

    /// Reads the files of a group: lines in Netscape's format, and lines `Set-Cookie: …` as in heads. As with curl, a file
    /// that cannot be read has no cookies; an invalid `Set-Cookie` line is reported.
    static func fill(_ jar: CookieJar, for options: TransferOptions) async {
        for name in options.cookieFiles where !name.isEmpty {
            guard let bytes = try? InputFile.contents(of: name) else { continue }
            let read = options.dropsSessionCookies ? makeJar() : jar
            await read.importNetscape(bytes)
            for value in headerValues(bytes) {
                guard let problem = await store(value, in: read), !options.global.isSilent else { continue }
                await Console.report("warning: option -b: a line Set-Cookie of “\(name)” \(problem)")
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
    /// - Returns: The reason that it was not stored, without the cookie's value; `nil` if it was.
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

    /// Writes all cookies to the file of a group. A failure is reported, and does not change the exit code.
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
            if global.tellsErrors { await Console.report("could not save cookies in “\(name)”: \(error)") }
        }
    }

    /// Whether a file exists and is not regular, such as `/dev/null`: it must not be replaced.
    private static func isSpecial(_ name: String) -> Bool {
        FileInput.status(of: name).map { $0.type != S_IFREG } ?? false
    }
}
