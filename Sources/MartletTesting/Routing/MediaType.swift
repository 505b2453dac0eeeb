/// Media types of files by their extensions.
enum MediaType {
    private static let types: [String: String] = [
        "html": "text/html; charset=utf-8", "htm": "text/html; charset=utf-8",
        "txt": "text/plain; charset=utf-8", "md": "text/markdown; charset=utf-8",
        "css": "text/css; charset=utf-8", "csv": "text/csv; charset=utf-8",
        "js": "text/javascript; charset=utf-8", "json": "application/json", "xml": "application/xml",
        "pdf": "application/pdf", "zip": "application/zip", "gz": "application/gzip",
        "tar": "application/x-tar", "wasm": "application/wasm",
        "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif",
        "svg": "image/svg+xml", "webp": "image/webp", "ico": "image/x-icon",
        "mp3": "audio/mpeg", "wav": "audio/wav", "mp4": "video/mp4", "webm": "video/webm",
        "woff": "font/woff", "woff2": "font/woff2",
    ]

    /// The type of a file; `application/octet-stream` where its extension is unknown.
    static func ofFile(_ path: String) -> String {
        let name = path.split(separator: "/").last ?? ""
        guard let dot = name.lastIndex(of: "."), dot > name.startIndex else {
            return "application/octet-stream"
        }
        return types[name[name.index(after: dot)...].lowercased()] ?? "application/octet-stream"
    }
}
