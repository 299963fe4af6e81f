  ;; Reads the digits of a text as one number.
  (func $number (param $i i32) (param $length i32) (result i32)
    (local $end i32) (local $n i32) (local $digit i32)
    (local.set $end (i32.add (local.get $i) (local.get $length)))
    (loop $next
      (local.set $digit (i32.sub (i32.load8_u (local.get $i)) (i32.const 48)))
      (if (i32.lt_u (local.get $digit) (i32.const 10))
        (then (local.set $n (i32.add (i32.mul (local.get $n) (i32.const 10)) (local.get $digit)))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $i) (local.get $end))))
    (local.get $n))
