  ;; Sends GET to the first JSON string after the first colon of the arguments, and logs everything
  ;; it receives.
  (data (i32.const 2048) "GET")
  (func $fetch (param $args i32) (param $args_len i32) (result i32)
    (local $i i32) (local $end i32) (local $url i32) (local $header i32)
    (local.set $i (local.get $args))
    (local.set $end (i32.add (local.get $args) (local.get $args_len)))
    (local.set $i (call $after (local.get $i) (local.get $end) (i32.const 58)))
    (local.set $url (call $after (local.get $i) (local.get $end) (i32.const 34)))
    (local.set $i (call $after (local.get $url) (local.get $end) (i32.const 34)))
    (call $send
      (i32.const 2048) (i32.const 3)
      (local.get $url) (i32.sub (i32.sub (local.get $i) (i32.const 1)) (local.get $url))
      (i32.const 0) (i32.const 0)
      (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
      (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
      (i32.const 1280))
    (if (i32.load8_u (i32.const 1280))
      (then (return (call $fail
        (i32.load (i32.const 1284)) (i32.load (i32.const 1288))
        (i32.load (i32.const 1292)) (i32.load (i32.const 1296))))))
    ;; Log the name and value of every header.
    (local.set $header (i32.load (i32.const 1288)))
    (local.set $i (i32.load (i32.const 1292)))
    (block $done (loop $next
      (br_if $done (i32.eqz (local.get $i)))
      (call $log (i32.const 1) (i32.load (local.get $header)) (i32.load offset=4 (local.get $header)))
      (call $log (i32.const 1) (i32.load offset=8 (local.get $header)) (i32.load offset=12 (local.get $header)))
      (local.set $header (i32.add (local.get $header) (i32.const 16)))
      (local.set $i (i32.sub (local.get $i) (i32.const 1)))
      (br $next)))
    (call $log (i32.const 1) (i32.load (i32.const 1296)) (i32.load (i32.const 1300)))
    (call $ok (i32.load (i32.const 1296)) (i32.load (i32.const 1300))))
  (func $after (param $i i32) (param $end i32) (param $byte i32) (result i32)
    (loop $next
      (if (i32.ge_u (local.get $i) (local.get $end)) (then (return (local.get $end))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.ne (i32.load8_u (i32.sub (local.get $i) (i32.const 1))) (local.get $byte))))
    (local.get $i))
