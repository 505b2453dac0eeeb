extension HTTPHost {
    /// The URL of a path.
    ///
    /// - Parameter path: Below the base, with or without a slash in front and with a query if it has one; or a whole URL
    ///   with its scheme.
    /// - Throws: An ``HTTPError`` with the code `.invalidURL`: also where dot segments, or two slashes in front, would lead
    ///   away from the base.
    public func url(for path: String) throws(HTTPError) -> HTTPURL {
        if HTTPHost.isWhole(path) { return try HTTPSession.url(path) }
        switch path.utf8.first {
        case nil, UInt8(ascii: "?"), UInt8(ascii: "#"): return try resolving(path, at: base, shift: 0)
        default: break
        }
        guard !path.hasPrefix("//") else {
            throw fault("a path with two slashes in front would name another host: give the whole URL")
        }
        let isRooted = path.utf8.first == UInt8(ascii: "/")
        // Behind a dot segment, what looks like a scheme is part of the path.
        let reference = "./\(isRooted ? path.dropFirst() : path[...])"
        let folder = base.folder
        let url = try resolving(reference, at: folder, shift: isRooted ? -1 : -2)
        guard url.path.hasPrefix(folder.path) else {
            throw fault("the path leads out of \(folder.path): give the whole URL where that is meant")
        }
        return url
    }

    /// Whether a text is a URL with its scheme, rather than a path: whether it begins with letters, a colon and two slashes.
    private static func isWhole(_ text: String) -> Bool {
        let bytes = text.utf8
        guard let first = bytes.first, (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(first | 0x20),
            let end = bytes.firstIndex(where: { byte in
                !((UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "+-.".utf8.contains(byte))
            })
        else { return false }
        return bytes[end...].starts(with: "://".utf8)
    }

    private func resolving(_ reference: String, at url: HTTPURL, shift: Int) throws(HTTPError) -> HTTPURL {
        do throws(HTTPURL.ParseError) {
            return try url.resolving(reference)
        } catch {
            let error = HTTPURL.ParseError(
                code: error.code, offset: max(0, error.offset + shift), message: error.message)
            throw HTTPError(
                .invalidURL, phase: .preparing, message: error.description, origin: base.origin.description,
                underlying: error)
        }
    }

    private func fault(_ message: String) -> HTTPError {
        HTTPError(.invalidURL, phase: .preparing, message: message, origin: base.origin.description)
    }
}

extension HTTPURL {
    /// The address with a slash at the end of its path.
    var folder: HTTPURL {
        guard path.utf8.last != UInt8(ascii: "/") else { return self }
        return HTTPURL(
            scheme: scheme, userInfo: userInfo, host: host, hostKind: hostKind, explicitPort: explicitPort,
            path: "\(path)/", query: query, fragment: fragment)
    }
}
