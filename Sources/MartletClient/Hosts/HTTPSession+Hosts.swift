extension HTTPSession {
    /// A service at a URL, with what its calls have in common.
    ///
    /// - Parameters:
    ///   - base: An absolute URL without query and fragment, such as `https://api.example.com/v2`. A user name and a
    ///     password in it become the host's credentials.
    ///   - headers: Fields that each request has unless it sets them itself.
    ///   - encoding: How parameters are written; as forms by default.
    ///   - options: What calls do otherwise than the session.
    /// - Throws: An ``HTTPError`` with the code `.invalidURL`: also where the URL names no host.
    public nonisolated func host(
        _ base: String, headers: HTTPFields = HTTPFields(), encoding: ParameterEncoding = .form,
        options: RequestOptions = RequestOptions()
    ) throws(HTTPError) -> HTTPHost {
        try HTTPHost(
            try HTTPSession.url(base), session: self, headers: headers, encoding: encoding, options: options)
    }

    /// A service by the name of its host.
    ///
    /// - Parameters:
    ///   - name: A name, or an address; an IPv6 address with or without brackets.
    ///   - port: 1–65535; `nil` for the scheme's.
    ///   - path: What all paths are below, with or without a slash in front.
    ///   - isSecure: Whether it is https; `true` by default.
    /// - Throws: As ``host(_:headers:encoding:options:)``.
    public nonisolated func host(
        named name: String, port: Int? = nil, path: String = "", isSecure: Bool = true,
        headers: HTTPFields = HTTPFields(), encoding: ParameterEncoding = .form,
        options: RequestOptions = RequestOptions()
    ) throws(HTTPError) -> HTTPHost {
        let bare = name.hasPrefix("[") && name.hasSuffix("]") ? String(name.dropFirst().dropLast()) : name
        let isAddress = bare.utf8.contains(UInt8(ascii: ":"))
        // Joined to a URL, a part must not reach into the next one.
        guard !bare.utf8.contains(where: { "/?#@\\[]".utf8.contains($0) }), isAddress || bare == name else {
            throw HTTPError(
                .invalidURL, phase: .preparing, message: "the name of a host is more than a name")
        }
        let authority = (isAddress ? "[\(bare)]" : bare) + (port.map { ":\($0)" } ?? "")
        let below = path.isEmpty || path.hasPrefix("/") ? path : "/\(path)"
        return try host(
            "\(isSecure ? "https" : "http")://\(authority)\(below)", headers: headers, encoding: encoding,
            options: options)
    }
}
